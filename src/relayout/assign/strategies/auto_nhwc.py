"""Automatic NHWC: orders run on forwards from the operators that demand them."""

from __future__ import annotations

from relayout.assign.assignment import Assignment
from relayout.assign.problem import LayoutProblem, Operator, Variant
from relayout.assign.strategies.forward import AtHand, Misfit, walk


def solve_auto_nhwc(problem: LayoutProblem) -> Assignment:
    """Each agnostic operator follows any operand that a Transpose stands before."""
    return walk(problem, _follow_moved)


def solve_auto_nhwc_majority(problem: LayoutProblem) -> Assignment:
    """Each agnostic operator runs in the orders in which most of its operands are at hand."""
    return walk(problem, _count_missing)


def _follow_moved(at_hand: AtHand, operator: Operator, variant: Variant) -> Misfit:
    """Whatever the other operands cost: of the variants that follow, the one that adds fewest."""
    moved = at_hand.moved(operator)
    reads = zip(operator.operands, variant.reads, strict=True)
    follows = any(moved.get(value) == order for value, order in reads)
    return int(not follows), *_count_missing(at_hand, operator, variant)


def _count_missing(at_hand: AtHand, operator: Operator, variant: Variant) -> Misfit:
    return (len(at_hand.missing(operator, variant)),)
