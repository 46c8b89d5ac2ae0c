"""The presetting strategy: whole regions change their orders, and copies stand at the borders."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from relayout.assign.assignment import Assignment
from relayout.assign.problem import LayoutProblem
from relayout.assign.strategies.demands import assigned, cheapest, demanded, ports
from relayout.assign.strategies.regions import OperatorRun, Ways, regions, spread

AGNOSTIC, AS_GIVEN, ANOTHER = range(3)
"""Kinds of operators with a choice: without a demand, demanding what they have, or another way."""


def solve_preset(problem: LayoutProblem) -> Assignment:
    """Each region of agnostic operators runs as most of the demands at its border require.

    Regions of tensors that are not features stay as given.
    """
    return assigned(problem, _preset(problem, [demanded(o) for o in problem.operators]))


def solve_preset_plus(problem: LayoutProblem) -> Assignment:
    """Regions join their neighbours where that costs less, until it nowhere does.

    The first merging is by kind, the second takes every operator with a choice. Whether a step
    costs less is counted exactly, so the answer never costs more than without.
    """
    demanded_variants = [demanded(operator) for operator in problem.operators]
    choice = _preset(problem, demanded_variants)
    kinds = _kinds(problem, demanded_variants)
    merged = [None if kind is None else AGNOSTIC for kind in kinds]
    everyone = [_every_way(problem, r) for k in (kinds, merged) for r in regions(problem, k)]
    improved = len(everyone)
    while improved:
        improved = sum(_improve(problem, choice, ways) for ways in everyone)
    return assigned(problem, choice)


def _preset(problem: LayoutProblem, demanded_variants: Sequence[int | None]) -> list[int]:
    choice = [demand or 0 for demand in demanded_variants]
    kinds = [
        AGNOSTIC if demand is None and not _is_plain(problem, index) else None
        for index, demand in enumerate(demanded_variants)
    ]
    for region in regions(problem, kinds):
        ways = {index: cheapest(problem.operators[index]) for index in region}
        demands = list(_border(problem, ways, choice))
        _replace(choice, _elected(problem, choice, ways, demands))
    return choice


def _is_plain(problem: LayoutProblem, index: int) -> bool:
    """Whether an operator makes something other than features."""
    operator = problem.operators[index]
    touched = operator.results or operator.operands
    return bool(touched) and problem.values[touched[0]].is_plain


def _kinds(problem: LayoutProblem, demanded_variants: Sequence[int | None]) -> list[int | None]:
    """Operators with a choice, by what they demand; None for those without."""
    kinds: list[int | None] = []
    for operator, demand in zip(problem.operators, demanded_variants, strict=True):
        if len(operator.variants) == 1:
            kinds.append(None)
        elif demand is None:
            kinds.append(AGNOSTIC)
        else:
            kinds.append(ANOTHER if demand else AS_GIVEN)
    return kinds


def _every_way(problem: LayoutProblem, region: OperatorRun) -> Ways:
    return {index: range(len(problem.operators[index].variants)) for index in region}


def _border(problem: LayoutProblem, ways: Ways, choice: Sequence[int]) -> Iterator[tuple[int, int]]:
    """What the operators around a region demand of the values it touches."""
    touched = _touched(problem, ways)
    around = [o for v in touched for o in (problem.producers[v], *problem.readers[v])]
    for index in dict.fromkeys(around):
        if index not in ways:
            operator = problem.operators[index]
            found = dict.fromkeys(ports(operator, operator.variants[choice[index]]))
            yield from (port for port in found if port[0] in touched)


def _elected(
    problem: LayoutProblem, choice: list[int], ways: Ways, demands: Sequence[tuple[int, int]]
) -> dict[int, int]:
    """The consistent choice for which most demands speak; among those the cheapest, the first."""
    best, least = dict.fromkeys(ways, 0), None
    for chosen in (best, *_consistent(problem, ways)):
        orders = {port for i, v in chosen.items() for port in _ports(problem, i, v)}
        votes = sum(demand in orders for demand in demands)
        weight = (-votes, _cost_with(problem, choice, chosen))
        if least is None or weight < least:
            best, least = chosen, weight
    return best


def _improve(problem: LayoutProblem, choice: list[int], ways: Ways) -> bool:
    """Give a region the cheapest of its consistent choices, if it is cheaper than what it has."""
    least, best = _cost_with(problem, choice, {i: choice[i] for i in ways}), None
    for chosen in (dict.fromkeys(ways, 0), *_consistent(problem, ways)):
        cost = _cost_with(problem, choice, chosen)
        if cost < least:
            least, best = cost, chosen
    _replace(choice, best or {})
    return best is not None


def _consistent(problem: LayoutProblem, ways: Ways) -> Iterator[dict[int, int]]:
    """The choices of a region that follow from each variant of its first member."""
    anchor = next(iter(ways))
    for variant in ways[anchor]:
        yield spread(problem, ways, anchor, variant)


def _cost_with(problem: LayoutProblem, choice: list[int], chosen: Mapping[int, int]) -> int:
    """What a region and the copies of its values cost if it chose so."""
    before = {index: choice[index] for index in chosen}
    _replace(choice, chosen)
    running = sum(problem.operators[i].variants[v].price for i, v in chosen.items())
    moved = sum(_copies_cost(problem, choice, value) for value in _touched(problem, chosen))
    _replace(choice, before)
    return running + moved


def _copies_cost(problem: LayoutProblem, choice: Sequence[int], value: int) -> int:
    producer = problem.producers[value]
    stored = dict(_ports(problem, producer, choice[producer]))[value]
    wanted = dict.fromkeys(
        order
        for reader in problem.readers[value]
        for read, order in _ports(problem, reader, choice[reader])
        if read == value
    )
    return sum(problem.values[value].price(stored, order) for order in wanted)


def _touched(problem: LayoutProblem, members: Iterable[int]) -> dict[int, None]:
    operators = [problem.operators[index] for index in members]
    return dict.fromkeys(v for operator in operators for v in operator.operands + operator.results)


def _ports(problem: LayoutProblem, index: int, variant: int) -> Iterator[tuple[int, int]]:
    operator = problem.operators[index]
    return ports(operator, operator.variants[variant])


def _replace(choice: list[int], chosen: Mapping[int, int]) -> None:
    for index, variant in chosen.items():
        choice[index] = variant
