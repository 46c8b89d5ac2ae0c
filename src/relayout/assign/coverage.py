"""Whether components make up a problem: nothing left out, nothing twice, nothing changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain

from relayout.assign.component import Component, ComponentValue, Decided, Member, Option, ValueOrder
from relayout.assign.problem import LayoutProblem, Operator, Value


def differences(problem: LayoutProblem, parts: Sequence[Decided]) -> list[str]:
    """Where the components and the problem disagree."""
    members = list(chain.from_iterable(part.component.members for part in parts))
    homes = sorted(member.operator for member in members if member.home)
    if homes != list(range(len(problem.operators))):
        return ["not every operator is at home in exactly one component"]
    if any(not 0 <= member.operator < len(homes) for member in members):
        return ["a component names an operator the problem does not have"]
    values = sorted(value.value for part in parts for value in part.component.values)
    priced = [index for index, value in enumerate(problem.values) if _has_price(value)]
    if values != priced:
        return ["not every value with a price belongs to exactly one component"]
    return [fault for part in parts for fault in _part_differences(problem, part)]


def _part_differences(problem: LayoutProblem, part: Decided) -> list[str]:
    position = {value.value: index for index, value in enumerate(part.component.values)}
    faults = [
        f"value {value.name} differs from the problem's"
        for value in part.component.values
        if not _is_same_value(value, part.component, problem)
    ]
    return faults + [
        f"operator {member.name} differs from the problem's"
        for member in part.component.members
        if not _is_restriction(member, problem.operators[member.operator], position)
    ]


def _is_same_value(value: ComponentValue, component: Component, problem: LayoutProblem) -> bool:
    """Whether a value has the problem's prices, and the members that touch it are all here."""
    given = problem.values[value.value]
    touching = {problem.producers[value.value], *problem.readers[value.value]}
    here = {component.members[index].operator for index in (value.producer, *value.readers)}
    alike = given.orders == value.orders and given.copy_price == value.copy_price
    return alike and touching == here


def _is_restriction(member: Member, operator: Operator, position: Mapping[int, int]) -> bool:
    """Whether a member is this operator as seen from the values of its component."""
    cheapest: dict[tuple[frozenset[ValueOrder], frozenset[ValueOrder]], int] = {}
    for variant in operator.variants:
        reads = _ports(operator.operands, variant.reads, position)
        writes = _ports(operator.results, variant.writes, position)
        price = variant.price if member.home else 0
        cheapest[reads, writes] = min(price, cheapest.get((reads, writes), price))
    stated = {(frozenset(o.reads), frozenset(o.writes)): o.price for o in member.options}
    if len(stated) != len(member.options) or stated != cheapest:
        return False
    if not member.home:
        return len(member.options) == 1
    return all(_is_variant(option, operator, position) for option in member.options)


def _is_variant(option: Option, operator: Operator, position: Mapping[int, int]) -> bool:
    """Whether the variant an option names has its orders and its price."""
    if not 0 <= option.variant < len(operator.variants):
        return False
    variant = operator.variants[option.variant]
    reads = _ports(operator.operands, variant.reads, position)
    writes = _ports(operator.results, variant.writes, position)
    stated = frozenset(option.reads), frozenset(option.writes), option.price
    return stated == (reads, writes, variant.price)


def _ports(
    values: tuple[int, ...], orders: tuple[int, ...], position: Mapping[int, int]
) -> frozenset[ValueOrder]:
    ports = zip(values, orders, strict=True)
    return frozenset((position[value], order) for value, order in ports if value in position)


def _has_price(value: Value) -> bool:
    """Whether some copy of the value costs anything."""
    if isinstance(value.copy_price, int):
        return value.copy_price > 0 and len(value.orders) > 1
    return any(
        value.price(s, w) for s in range(len(value.orders)) for w in range(len(value.orders))
    )
