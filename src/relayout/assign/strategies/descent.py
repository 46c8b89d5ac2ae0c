"""Improving a choice one member at a time, in exact integers."""

from __future__ import annotations

from collections.abc import Sequence
from time import monotonic

from relayout.assign.component import Component, Option
from relayout.assign.problem import price_between


def descend(component: Component, chosen: Sequence[int], deadline: float) -> tuple[int, ...]:
    """The choice after every change of a single member that costs less, until none does."""
    state = _State(component, chosen)
    todo = dict.fromkeys(i for i, m in enumerate(component.members) if len(m.options) > 1)
    while todo and monotonic() < deadline:
        member = next(iter(todo))
        del todo[member]
        if state.improve(member):
            todo.update(dict.fromkeys(state.neighbours(member)))
    return tuple(state.chosen)


class _State:
    """A choice with, for each value, the stored order and how many members want each order."""

    def __init__(self, component: Component, chosen: Sequence[int]) -> None:
        self.component = component
        self.chosen = list(chosen)
        self.stored = [0] * len(component.values)
        self.wanted: list[dict[int, int]] = [{} for _ in component.values]
        for member, option in zip(component.members, chosen, strict=True):
            self._add(member.options[option])

    def improve(self, member: int) -> bool:
        """Give a member its best option; whether that is another one."""
        options = self.component.members[member].options
        before = self.chosen[member]
        self._remove(options[before])
        costs = [self._cost(option) for option in options]
        least = min(costs)
        best = before if costs[before] == least else costs.index(least)
        self._add(options[best])
        self.chosen[member] = best
        return best != before

    def neighbours(self, member: int) -> list[int]:
        """The other members with a choice that touch a value this one touches."""
        ports = self.component.members[member].options[0]
        near: dict[int, None] = {}
        for index, _ in ports.reads + ports.writes:
            value = self.component.values[index]
            near.update(dict.fromkeys((value.producer, *value.readers)))
        near.pop(member, None)
        return [other for other in near if len(self.component.members[other].options) > 1]

    def _cost(self, option: Option) -> int:
        """What an option costs, given all other members."""
        cost = option.price
        for index, order in option.reads:
            if order not in self.wanted[index]:
                cost += self._price(index, self.stored[index], order)
        for index, order in option.writes:
            cost += sum(self._price(index, order, wanted) for wanted in self.wanted[index])
        return cost

    def _price(self, index: int, stored: int, wanted: int) -> int:
        if stored == wanted:
            return 0
        return price_between(self.component.values[index].copy_price, stored, wanted)

    def _add(self, option: Option) -> None:
        for index, order in option.reads:
            self.wanted[index][order] = self.wanted[index].get(order, 0) + 1
        for index, order in option.writes:
            self.stored[index] = order

    def _remove(self, option: Option) -> None:
        for index, order in option.reads:
            self.wanted[index][order] -= 1
            if not self.wanted[index][order]:
                del self.wanted[index][order]
