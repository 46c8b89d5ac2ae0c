"""The strategy of automatic NHWC: orders run on forwards from the operators that demand them."""

from __future__ import annotations

from relayout.assign.assignment import Assignment
from relayout.assign.problem import LayoutProblem, Operator, Variant
from relayout.assign.strategies.forward import AtHand, walk


def solve_auto_nhwc(problem: LayoutProblem) -> Assignment:
    """Each agnostic operator runs in the orders in which most of its operands are at hand."""
    return walk(problem, _count_missing)


def _count_missing(at_hand: AtHand, operator: Operator, variant: Variant) -> int:
    return len(at_hand.missing(operator, variant))
