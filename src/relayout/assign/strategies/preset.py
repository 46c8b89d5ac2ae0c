"""The presetting strategy: whole regions change their orders, and copies stand at the borders."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from relayout.assign.assignment import Assignment
from relayout.assign.problem import LayoutProblem
from relayout.assign.strategies.demands import assigned, cheapest, demanded, ports
from relayout.assign.strategies.region_choice import described
from relayout.assign.strategies.regions import Ways, regions, spread

AGNOSTIC = 0
"""The kind of operators without a demand."""


def solve_preset(problem: LayoutProblem) -> Assignment:
    """Each region of agnostic operators runs as most of the demands at its border require.

    Regions of tensors that are not features stay as given.
    """
    choice = preset_choice(problem)
    return assigned(problem, choice, described(problem, choice))


def preset_choice(problem: LayoutProblem) -> list[int]:
    """Demanding operators as they demand, regions of features as most of their borders do."""
    choice = [demanded(operator) or 0 for operator in problem.operators]
    elect_features(problem, choice)
    return choice


def elect_features(problem: LayoutProblem, choice: list[int]) -> None:
    """Give each region of agnostic operators that make features what its border demands."""
    everyone = enumerate(problem.operators)
    kinds = [
        None if is_plain(problem, i) or demanded(o) is not None else AGNOSTIC for i, o in everyone
    ]
    for region in regions(problem, kinds):
        ways = {index: cheapest(problem.operators[index]) for index in region}
        demands = list(_border(problem, ways, choice))
        replace_choice(choice, _elected(problem, choice, ways, demands))


def is_plain(problem: LayoutProblem, index: int) -> bool:
    """Whether an operator makes something other than features."""
    operator = problem.operators[index]
    touched = operator.results or operator.operands
    return bool(touched) and problem.values[touched[0]].is_plain


def _border(problem: LayoutProblem, ways: Ways, choice: Sequence[int]) -> Iterator[tuple[int, int]]:
    """What the operators around a region demand of the values it touches.

    Agnostic ones demand nothing; those that run in another order than given want it kept.
    """
    touched = _touched(problem, ways)
    around = [o for v in touched for o in (problem.producers[v], *problem.readers[v])]
    for index in dict.fromkeys(around):
        operator = problem.operators[index]
        is_demand = choice[index] != 0 or demanded(operator) is not None
        if index not in ways and is_demand:
            found = dict.fromkeys(ports(operator, operator.variants[choice[index]]))
            yield from (port for port in found if port[0] in touched)


def _elected(
    problem: LayoutProblem, choice: list[int], ways: Ways, demands: Sequence[tuple[int, int]]
) -> dict[int, int]:
    """The consistent choice for which most demands speak; among those the cheapest, the first."""
    best, least = dict.fromkeys(ways, 0), None
    for chosen in (best, *consistent(problem, ways)):
        orders = {port for i, v in chosen.items() for port in _ports(problem, i, v)}
        votes = sum(demand in orders for demand in demands)
        weight = (-votes, cost_with(problem, choice, chosen))
        if least is None or weight < least:
            best, least = chosen, weight
    return best


def consistent(problem: LayoutProblem, ways: Ways) -> Iterator[dict[int, int]]:
    """The choices of a region that follow from each variant of its first member."""
    anchor = next(iter(ways))
    for variant in ways[anchor]:
        yield spread(problem, ways, anchor, variant)


def cost_with(problem: LayoutProblem, choice: list[int], chosen: Mapping[int, int]) -> int:
    """What a region and the copies of its values cost if it chose so."""
    before = {index: choice[index] for index in chosen}
    replace_choice(choice, chosen)
    running = sum(problem.operators[i].variants[v].price for i, v in chosen.items())
    moved = sum(_copies_cost(problem, choice, value) for value in _touched(problem, chosen))
    replace_choice(choice, before)
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


def replace_choice(choice: list[int], chosen: Mapping[int, int]) -> None:
    for index, variant in chosen.items():
        choice[index] = variant
