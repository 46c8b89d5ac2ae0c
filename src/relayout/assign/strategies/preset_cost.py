"""The presetting strategy by cost: regions join their neighbours where that costs less."""

from __future__ import annotations

from relayout.assign.assignment import Assignment
from relayout.assign.problem import LayoutProblem
from relayout.assign.strategies.demands import assigned, demanded
from relayout.assign.strategies.preset import (
    AGNOSTIC,
    consistent,
    cost_with,
    preset_choice,
    replace_choice,
)
from relayout.assign.strategies.regions import OperatorRun, Ways, regions

AS_GIVEN, ANOTHER = AGNOSTIC + 1, AGNOSTIC + 2
"""More kinds of operators with a choice: demanding what they have, demanding another way."""


def solve_preset_cost(problem: LayoutProblem) -> Assignment:
    """Regions join their neighbours where that costs less, until it nowhere does.

    The first merging is by kind, the second takes every operator with a choice. Whether a step
    costs less is counted exactly, so the answer never costs more than without.
    """
    choice, kinds = preset_choice(problem), _kinds(problem)
    merged = [None if kind is None else AGNOSTIC for kind in kinds]
    everyone = [_every_way(problem, r) for k in (kinds, merged) for r in regions(problem, k)]
    improved = len(everyone)
    while improved:
        improved = sum(_improve(problem, choice, ways) for ways in everyone)
    return assigned(problem, choice)


def _kinds(problem: LayoutProblem) -> list[int | None]:
    """Operators with a choice, by what they demand; None for those without."""
    kinds: list[int | None] = []
    for operator in problem.operators:
        demand = demanded(operator)
        if len(operator.variants) == 1:
            kinds.append(None)
        elif demand is None:
            kinds.append(AGNOSTIC)
        else:
            kinds.append(ANOTHER if demand else AS_GIVEN)
    return kinds


def _every_way(problem: LayoutProblem, region: OperatorRun) -> Ways:
    return {index: range(len(problem.operators[index].variants)) for index in region}


def _improve(problem: LayoutProblem, choice: list[int], ways: Ways) -> bool:
    """Give a region the cheapest of its consistent choices, if it is cheaper than what it has."""
    least, best = cost_with(problem, choice, {i: choice[i] for i in ways}), None
    for chosen in (dict.fromkeys(ways, 0), *consistent(problem, ways)):
        cost = cost_with(problem, choice, chosen)
        if cost < least:
            least, best = cost, chosen
    replace_choice(choice, best or {})
    return best is not None
