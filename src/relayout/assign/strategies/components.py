"""Cutting a problem into components that share no choice."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from relayout.assign.component import Component, ComponentValue, Member, Option, ValueOrder
from relayout.assign.problem import LayoutProblem, Operator, Value, Variant

_FORCED = -1
"""The component of all values that no choice of a variant touches."""


def split(problem: LayoutProblem) -> list[Component]:
    """The components; the first holds whatever needs no choice between orders.

    Operators that touch a value in one order whatever their variant do not connect it to anything,
    nor do values whose copies are free: they are in no component at all.
    """
    priced = [_has_price(value) for value in problem.values]
    moving = [_moving(operator, priced) for operator in problem.operators]
    roots = _roots(len(problem.values), moving)
    numbers: dict[int, int] = {_FORCED: 0}
    for root in roots:
        numbers.setdefault(root, len(numbers))
    drafts = [_ComponentDraft(problem) for _ in numbers]
    for value, root in enumerate(roots):
        if priced[value]:
            drafts[numbers[root]].add_value(value)
    for index, operator in enumerate(problem.operators):
        touched = {value: numbers[roots[value]] for value in _ports(operator) if priced[value]}
        home = numbers[roots[moving[index][0]]] if moving[index] else 0
        for number in dict.fromkeys([home, *touched.values()]):
            drafts[number].add_operator(index, home=number == home)
    return [draft.finish() for draft in drafts if draft.members]


class _ComponentDraft:
    """A component in the making."""

    def __init__(self, problem: LayoutProblem) -> None:
        self.problem = problem
        self.members: list[Member] = []
        self.positions: dict[int, int] = {}
        self.member_of: dict[int, int] = {}

    def add_value(self, value: int) -> None:
        self.positions[value] = len(self.positions)

    def add_operator(self, index: int, *, home: bool) -> None:
        operator = self.problem.operators[index]
        self.member_of[index] = len(self.members)
        options = self._options(operator) if home else self._only_option(operator)
        self.members.append(Member(index, operator.name, home, options))

    def _options(self, operator: Operator) -> tuple[Option, ...]:
        """One option per distinct set of orders, each at its least price."""
        options: dict[tuple[tuple[ValueOrder, ...], tuple[ValueOrder, ...]], Option] = {}
        for number, variant in enumerate(operator.variants):
            ports = self._restrict(operator, variant)
            known = options.get(ports)
            if known is None or variant.price < known.price:
                options[ports] = Option(number, variant.price, *ports)
        return tuple(options.values())

    def _only_option(self, operator: Operator) -> tuple[Option, ...]:
        return (Option(0, 0, *self._restrict(operator, operator.variants[0])),)

    def _restrict(
        self, operator: Operator, variant: Variant
    ) -> tuple[tuple[ValueOrder, ...], tuple[ValueOrder, ...]]:
        reads = self._here(operator.operands, variant.reads)
        if len(reads) > 1:
            reads = sorted(set(reads))
        return tuple(reads), tuple(self._here(operator.results, variant.writes))

    def _here(self, values: Sequence[int], orders: Sequence[int]) -> list[ValueOrder]:
        places = map(self.positions.get, values)
        return [(p, o) for p, o in zip(places, orders, strict=True) if p is not None]

    def finish(self) -> Component:
        return Component(tuple(self.members), tuple(map(self._stored, self.positions)))

    def _stored(self, index: int) -> ComponentValue:
        value = self.problem.values[index]
        producer = self.member_of[self.problem.producers[index]]
        readers = tuple(self.member_of[reader] for reader in self.problem.readers[index])
        return ComponentValue(index, value.name, value.orders, value.copy_price, producer, readers)


def _roots(count: int, groups: Iterable[list[int]]) -> list[int]:
    """For each value one that stands for its component, given which values move together."""
    parents = list(range(count))
    touched = [False] * count
    for group in groups:
        for value in group:
            touched[value] = True
            parents[_find(parents, value)] = _find(parents, group[0])
    return [_find(parents, value) if touched[value] else _FORCED for value in range(len(parents))]


def _find(parents: list[int], node: int) -> int:
    while parents[node] != node:
        parents[node] = parents[parents[node]]
        node = parents[node]
    return node


def _moving(operator: Operator, priced: Sequence[bool]) -> list[int]:
    """The values an operator touches in more than one order."""
    if len(operator.variants) == 1:
        return []
    first = operator.variants[0].reads + operator.variants[0].writes
    rows = [variant.reads + variant.writes for variant in operator.variants]
    return [
        value
        for slot, value in enumerate(_ports(operator))
        if priced[value] and any(row[slot] != first[slot] for row in rows)
    ]


def _ports(operator: Operator) -> tuple[int, ...]:
    return operator.operands + operator.results


def _has_price(value: Value) -> bool:
    if isinstance(value.copy_price, int):
        return value.copy_price > 0 and len(value.orders) > 1
    return any(_off_diagonal(value.copy_price))


def _off_diagonal(table: tuple[tuple[int, ...], ...]) -> Iterable[int]:
    return (p for i, row in enumerate(table) for j, p in enumerate(row) if i != j)
