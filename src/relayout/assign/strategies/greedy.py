"""The topological greedy strategy: each operator adds the copies that are cheapest for it."""

from __future__ import annotations

from relayout.assign.assignment import Assignment
from relayout.assign.problem import LayoutProblem, Operator, Variant
from relayout.assign.strategies.forward import AtHand, Misfit, walk


def solve_greedy(problem: LayoutProblem) -> Assignment:
    """Each agnostic operator runs in the orders that cost least to make of its operands."""
    return walk(problem, _price_missing)


def _price_missing(at_hand: AtHand, operator: Operator, variant: Variant) -> Misfit:
    values = at_hand.problem.values
    missing = at_hand.missing(operator, variant)
    return (sum(values[value].price(*move) for value, *move in missing),)
