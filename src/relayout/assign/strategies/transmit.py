"""The transmitting strategy: values are coloured backwards from demands, then forwards."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from relayout.assign.assignment import Assignment
from relayout.assign.problem import LayoutProblem, Operator
from relayout.assign.strategies.demands import assigned, cheapest, demanded, ports, walk_order
from relayout.infer.transmission import coloured_backwards, majority

Colours: TypeAlias = dict[int, int]
"""The order meant for each value so far; the first operator decides."""


def solve_transmit(problem: LayoutProblem) -> Assignment:
    """One reverse pass, then one forward pass that decides every operator."""
    colours = reverse_colours(problem)
    choice = [0] * len(problem.operators)
    for index in walk_order(problem):
        operator = problem.operators[index]
        variant = demanded(operator)
        choice[index] = best_fitting(operator, colours)[0] if variant is None else variant
        _colour(colours, ports(operator, operator.variants[choice[index]]))
    return assigned(problem, choice)


def reverse_colours(problem: LayoutProblem) -> Colours:
    """What follows from the demands for the values before them.

    The ends of the graph demand nothing here: they are where conversions may stand.
    """
    inner = [problem.operators[index] for index in walk_order(problem)]
    return coloured_backwards(
        [o for o in inner if o.operands and o.results], _OrderPalette(problem)
    )


class _OrderPalette:
    """Orders as colours."""

    def __init__(self, problem: LayoutProblem) -> None:
        self.is_plain = [value.is_plain for value in problem.values]

    def results(self, operator: Operator) -> Sequence[int]:
        return operator.results

    def known(self, operator: Operator) -> Sequence[tuple[int, int]]:
        variant = demanded(operator)
        return () if variant is None else list(ports(operator, operator.variants[variant]))

    def before(self, operator: Operator, colours: Colours) -> Iterator[tuple[int, int]]:
        """The operands whose order follows from the colours of the results.

        Where features become something else, or the other way round, nothing follows.
        """
        results = {value: colours[value] for value in operator.results if value in colours}
        kinds = {self.is_plain[value] for value in results}
        if len(kinds) != 1:
            return
        reads = [operator.variants[i].reads for i in best_fitting(operator, results)]
        for value, orders in zip(operator.operands, zip(*reads, strict=True), strict=True):
            if len(set(orders)) == 1 and self.is_plain[value] in kinds:
                yield value, orders[0]

    def elect(self, votes: Sequence[int]) -> int:
        return majority(votes)


def best_fitting(operator: Operator, colours: Mapping[int, int]) -> list[int]:
    """The cheapest variants that agree with most colours, the given one first."""
    fits = {
        index: sum(colours.get(value) == order for value, order in ports(operator, variant))
        for index, variant in ((i, operator.variants[i]) for i in cheapest(operator))
    }
    most = max(fits.values())
    return [index for index, fit in fits.items() if fit == most]


def _colour(colours: Colours, found: Iterable[tuple[int, int]]) -> None:
    for value, order in found:
        colours.setdefault(value, order)
