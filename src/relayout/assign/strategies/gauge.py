"""Whether a component is a question of two labels, and which order has which label where."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from relayout.assign.component import Component, Member


class Gauge(NamedTuple):
    """Labels 0 and 1 such that every member moves all its values to one label together."""

    options: tuple[tuple[int, int], ...]
    """The option of each member at label 0 and at label 1; twice the same if it has but one."""
    orders: tuple[tuple[int, int] | None, ...]
    """The order of each value at label 0 and at label 1; None if it is used in one order only."""


class _ParityTie(NamedTuple):
    """Member and value have the same label in their first form, or different ones if odd."""

    member: int
    value: int
    odd: bool


def gauge(component: Component) -> Gauge | None:
    """The labels, label 0 being what most members do as given; None if two do not suffice."""
    if any(len(member.options) > 2 for member in component.members):
        return None
    used = _used_orders(component)
    if any(len(orders) > 2 for orders in used):
        return None
    ties = [tie for index in range(len(component.members)) for tie in _ties(component, index, used)]
    parities = _parities(len(component.members), len(component.values), ties)
    if parities is None:
        return None
    members, values = parities
    flipped = 2 * sum(map(_is_odd, component.members, members)) > len(component.members)
    return Gauge(
        tuple(
            _pair(len(m.options), odd != flipped)
            for m, odd in zip(component.members, members, strict=True)
        ),
        tuple(
            _order_pair(orders, odd != flipped) for orders, odd in zip(used, values, strict=True)
        ),
    )


def _is_odd(member: Member, odd: bool) -> bool:
    return odd and len(member.options) == 2


def _pair(count: int, odd: bool) -> tuple[int, int]:
    if count == 1:
        return 0, 0
    return (1, 0) if odd else (0, 1)


def _order_pair(orders: list[int], odd: bool) -> tuple[int, int] | None:
    if len(orders) < 2:
        return None
    return (orders[1], orders[0]) if odd else (orders[0], orders[1])


def _used_orders(component: Component) -> list[list[int]]:
    used: list[dict[int, None]] = [{} for _ in component.values]
    for member in component.members:
        for option in member.options:
            for value, order in option.reads + option.writes:
                used[value][order] = None
    return [list(orders) for orders in used]


def _ties(component: Component, index: int, used: list[list[int]]) -> Iterator[_ParityTie]:
    """In what the two options of a member differ."""
    options = component.members[index].options
    if len(options) == 1:
        return
    ports = [option.reads + option.writes for option in options]
    for side in (0, 1):
        for value, order in ports[side]:
            if (value, order) not in ports[1 - side]:
                yield _ParityTie(index, value, used[value].index(order) != side)


def _parities(
    members: int, values: int, ties: list[_ParityTie]
) -> tuple[list[bool], list[bool]] | None:
    """For each member and value whether its first form has label 1; None on a contradiction."""
    neighbours: list[list[tuple[int, bool]]] = [[] for _ in range(members + values)]
    for member, value, odd in ties:
        neighbours[member].append((members + value, odd))
        neighbours[members + value].append((member, odd))
    labels: list[bool | None] = [None] * len(neighbours)
    for start in range(len(neighbours)):
        if labels[start] is None and not _spread(start, neighbours, labels):
            return None
    known = [bool(label) for label in labels]
    return known[:members], known[members:]


def _spread(
    start: int, neighbours: list[list[tuple[int, bool]]], labels: list[bool | None]
) -> bool:
    labels[start] = False
    todo = [start]
    while todo:
        node = todo.pop()
        for other, odd in neighbours[node]:
            wanted = labels[node] != odd
            if labels[other] is None:
                labels[other] = wanted
                todo.append(other)
            elif labels[other] != wanted:
                return False
    return True
