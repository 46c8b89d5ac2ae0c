"""A strategy: from the orders as given downhill, one operator at a time."""

from __future__ import annotations

from time import monotonic

from relayout import Strategy
from relayout.assign.assignment import Assignment
from relayout.assign.problem import LayoutProblem, as_given, evaluate


def hill_climb(problem: LayoutProblem, seconds: float) -> Assignment:
    """Each operator takes the variant that costs least, until none changes or time is up."""
    deadline = monotonic() + seconds
    before: tuple[int, ...] = ()
    choice = as_given(problem)
    while choice != before and monotonic() < deadline:
        before = choice
        for index in range(len(choice)):
            if monotonic() < deadline:
                choice = _stepped(problem, choice, index)
    return Assignment(choice, _cost(problem, choice))


def _stepped(problem: LayoutProblem, choice: tuple[int, ...], index: int) -> tuple[int, ...]:
    """The cheapest choice that differs in one operator; the same one if none costs less."""
    variants = range(len(problem.operators[index].variants))
    others = [(*choice[:index], variant, *choice[index + 1 :]) for variant in variants]
    return min((choice, *others), key=lambda other: _cost(problem, other))


def _cost(problem: LayoutProblem, choice: tuple[int, ...]) -> int:
    cost = evaluate(problem, choice)
    if cost is None:
        raise ValueError("the choice names a variant that an operator does not have")
    return cost


HILL_CLIMB = Strategy(
    "hill-climb",
    hill_climb,
    summary="one operator at a time, until no single change costs less",
)
