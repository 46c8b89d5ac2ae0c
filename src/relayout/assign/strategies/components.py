"""Cutting a problem into components that share no choice."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeAlias

from relayout.assign.component import Component, ComponentValue, Member, Option, ValueOrder
from relayout.assign.problem import LayoutProblem, Operator, Value
from relayout.assign.questions import Allowed

_FORCED = -1
"""The component of all values that no choice of a variant touches."""
_NOWHERE = -1
"""The component of values whose copies are free."""

_PortRun: TypeAlias = Sequence[ValueOrder]


class _OperatorRow(NamedTuple):
    """An operator with what each variant costs, reads and writes."""

    name: str
    variants: Sequence[tuple[int, _PortRun, _PortRun]]


def split(problem: LayoutProblem) -> list[Component]:
    """The components; the first holds whatever needs no choice between orders.

    Operators that touch a value in one order whatever their variant do not connect it to anything,
    nor do values whose copies are free: they are in no component at all.
    """
    moving = map(_moving, problem.operators)
    return _split(problem.values, moving, map(_row, problem.operators))


def split_open(component: Component, allowed: Allowed) -> list[Component]:
    """The components of the problem that a component is with these options open."""
    moving = map(_moving_open, component.members, allowed)
    return _split(component.values, moving, map(_open_row, component.members, allowed))


def _split(
    values: Sequence[Value | ComponentValue],
    moving: Iterable[Sequence[int]],
    rows: Iterable[_OperatorRow],
) -> list[Component]:
    """The components of rows of which each touches the moving values in more than one order."""
    priced = [_has_price(value) for value in values]
    moved = [[value for value in each if priced[value]] for each in moving]
    roots = _roots(len(values), moved)
    numbers: dict[int, int] = {_FORCED: 0}
    for root in roots:
        numbers.setdefault(root, len(numbers))
    here = [numbers[root] if has else _NOWHERE for root, has in zip(roots, priced, strict=True)]
    drafts = _ComponentDrafts(values, here, len(numbers))
    for index, (row, group) in enumerate(zip(rows, moved, strict=True)):
        drafts.add(index, row, here[group[0]] if group else 0)
    return drafts.finish()


class _ComponentDrafts:
    """Components in the making."""

    def __init__(
        self, values: Sequence[Value | ComponentValue], here: Sequence[int], count: int
    ) -> None:
        self.values = values
        self.here = here
        """The component of each value."""
        self.inside: list[list[int]] = [[] for _ in range(count)]
        """The values of each component."""
        self.ports: list[list[ValueOrder]] = []
        """By value and order, as the component of the value names them."""
        for value, number in enumerate(here):
            if number == _NOWHERE:
                self.ports.append([])
                continue
            place = len(self.inside[number])
            self.inside[number].append(value)
            self.ports.append([(place, order) for order in range(len(values[value].orders))])
        self.members: list[list[Member]] = [[] for _ in range(count)]
        self.producers = [0] * len(values)
        self.readers: list[list[int]] = [[] for _ in values]

    def add(self, index: int, row: _OperatorRow, home: int) -> None:
        """An operator as each component sees it that it is at home in or touches."""
        here = self.here
        _, reads, writes = row.variants[0]
        places: dict[int, int] = {}
        for number in {home, *[here[v] for v, _ in reads], *[here[v] for v, _ in writes]}:
            if number == _NOWHERE:
                continue
            is_home = number == home
            options = self._options(number, row) if is_home else self._only_option(number, row)
            places[number] = len(self.members[number])
            self.members[number].append(Member(index, row.name, is_home, options))
        for value, _ in writes:
            if here[value] != _NOWHERE:
                self.producers[value] = places[here[value]]
        for value in dict.fromkeys([value for value, _ in reads]):
            if here[value] != _NOWHERE:
                self.readers[value].append(places[here[value]])

    def _options(self, number: int, row: _OperatorRow) -> tuple[Option, ...]:
        """One option per distinct set of orders, each at its least price."""
        if len(row.variants) == 1:
            price, reads, writes = row.variants[0]
            return (Option(0, price, *self._restrict(number, reads, writes)),)
        options: dict[tuple[tuple[ValueOrder, ...], tuple[ValueOrder, ...]], Option] = {}
        for variant, (price, reads, writes) in enumerate(row.variants):
            ports = self._restrict(number, reads, writes)
            known = options.get(ports)
            if known is None or price < known.price:
                options[ports] = Option(variant, price, *ports)
        return tuple(options.values())

    def _only_option(self, number: int, row: _OperatorRow) -> tuple[Option, ...]:
        _, reads, writes = row.variants[0]
        return (Option(0, 0, *self._restrict(number, reads, writes)),)

    def _restrict(
        self, number: int, reads: _PortRun, writes: _PortRun
    ) -> tuple[tuple[ValueOrder, ...], tuple[ValueOrder, ...]]:
        here, ports = self.here, self.ports
        read = [ports[value][order] for value, order in reads if here[value] == number]
        if len(read) > 1:
            read = sorted(set(read))
        written = [ports[value][order] for value, order in writes if here[value] == number]
        return tuple(read), tuple(written)

    def finish(self) -> list[Component]:
        return [
            Component(tuple(members), tuple(map(self._stored, inside)))
            for members, inside in zip(self.members, self.inside, strict=True)
            if members
        ]

    def _stored(self, index: int) -> ComponentValue:
        value = self.values[index]
        return ComponentValue(
            index,
            value.name,
            value.orders,
            value.copy_price,
            self.producers[index],
            tuple(self.readers[index]),
        )


def _row(operator: Operator) -> _OperatorRow:
    operands, results = operator.operands, operator.results
    variants = [
        (
            variant.price,
            tuple(zip(operands, variant.reads, strict=True)),
            tuple(zip(results, variant.writes, strict=True)),
        )
        for variant in operator.variants
    ]
    return _OperatorRow(operator.name, variants)


def _open_row(member: Member, options: Sequence[int]) -> _OperatorRow:
    return _OperatorRow(member.name, [member.options[option][1:] for option in options])


def _moving(operator: Operator) -> list[int]:
    """The values an operator touches in more than one order."""
    count = len(operator.variants)
    if count == 1:
        return []
    columns = zip(*[variant.reads + variant.writes for variant in operator.variants], strict=True)
    ports = operator.operands + operator.results
    return [v for v, orders in zip(ports, columns, strict=True) if orders.count(orders[0]) < count]


def _moving_open(member: Member, options: Sequence[int]) -> list[int]:
    """The values a member touches in more than one order with these options."""
    if len(options) == 1:
        return []
    first, *others = (
        {*member.options[each].reads, *member.options[each].writes} for each in options
    )
    return sorted({value for other in others for value, _ in first ^ other})


def _roots(count: int, groups: Iterable[Sequence[int]]) -> list[int]:
    """For each value one that stands for its component, given which values move together."""
    parents = list(range(count))
    touched = [False] * count
    for group in groups:
        root = _find(parents, group[0]) if group else _FORCED
        for value in group:
            touched[value] = True
            parents[_find(parents, value)] = root
    return [_find(parents, value) if touched[value] else _FORCED for value in range(count)]


def _find(parents: list[int], node: int) -> int:
    while parents[node] != node:
        parents[node] = parents[parents[node]]
        node = parents[node]
    return node


def _has_price(value: Value | ComponentValue) -> bool:
    if isinstance(value.copy_price, int):
        return value.copy_price > 0 and len(value.orders) > 1
    return any(p for i, row in enumerate(value.copy_price) for j, p in enumerate(row) if i != j)
