"""Smaller questions about a component, stated as data, for solver and checker alike.

Why a question about one label may fix members for good: let every value here have one price for
all its copies, and let the members `A` be a best answer to "this label, or any other, at its
least price?". Take a best choice of the whole and give this label to all of `A`. The copies of a
value rise by no more than in the two-label question, where the change costs nothing, because
copies between other labels can only fall together or vanish. So some best choice has the label
on all of `A`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TypeAlias

from relayout.assign.component import Component, ComponentValue, Member, Option, ValueOrder
from relayout.assign.problem import LayoutProblem, Operator, Value, Variant

Allowed: TypeAlias = list[tuple[int, ...]]
"""The options still open for each member."""

_OTHER, _LABEL = 0, 1
"""The two orders of every value in a question about one label."""
_QUESTION = ("other", "label")


class UnsoundError(ValueError):
    """A proof that shows nothing, with the reason."""


def one_against_rest(
    component: Component, allowed: Allowed, label: Collection[ValueOrder]
) -> Component:
    """The component with one label against all others taken together.

    A member that can have the label has it as its first option, whose variant is the option in
    the component, and is at home; one that cannot is not.
    """
    ports = frozenset(label)
    touched = {value for value, _ in ports}
    if len(touched) != len(ports):
        raise UnsoundError("a label has two orders of one value")
    values = [
        ComponentValue(number, name, _QUESTION, price if isinstance(price, int) else 0, made, read)
        for number, name, _, price, made, read in component.values
    ]
    # Of other values with prices by pair no copy is asked: no member at one can have the label.
    if any(
        index in touched and not isinstance(value.copy_price, int)
        for index, value in enumerate(component.values)
    ):
        raise UnsoundError("a label has a value whose price depends on the pair of orders")
    members = [
        _against(member, options, ports)
        for member, options in zip(component.members, allowed, strict=True)
    ]
    return Component(tuple(members), tuple(values))


def _against(member: Member, options: tuple[int, ...], label: frozenset[ValueOrder]) -> Member:
    inside = [index for index in options if _is_inside(member.options[index], label)]
    outside = [index for index in options if index not in inside] if inside else options
    if len(inside) > 1:
        raise UnsoundError("a member has two options of one label")
    merged = [_as(member.options[index], index, _LABEL) for index in inside]
    if outside:
        prices = [member.options[index].price for index in outside]
        least = outside[prices.index(min(prices))]
        merged.append(_as(member.options[least], least, _OTHER))
    return Member(member.operator, member.name, bool(inside), tuple(merged))


def _is_inside(option: Option, label: frozenset[ValueOrder]) -> bool:
    ports = option.reads + option.writes
    if label.isdisjoint(ports):
        return False
    if not label.issuperset(ports):
        raise UnsoundError("an option has a label at some of its ports only")
    return True


def _as(option: Option, index: int, order: int) -> Option:
    reads = dict.fromkeys([(value, order) for value, _ in option.reads])
    writes = [(value, order) for value, _ in option.writes]
    return Option(index, option.price, tuple(reads), tuple(writes))


def as_problem(component: Component, allowed: Allowed) -> LayoutProblem:
    """A component with these options open, as a problem of its own.

    Operators are the members, their variants the open options, both in the same order.
    """
    pairs = zip(component.members, allowed, strict=True)
    operators = [_operator(m.name, [m.options[index] for index in options]) for m, options in pairs]
    values = [Value(value.name, value.orders, value.copy_price) for value in component.values]
    return LayoutProblem(tuple(operators), tuple(values))


def _operator(name: str, options: Sequence[Option]) -> Operator:
    results = tuple(value for value, _ in options[0].writes)
    widths: dict[int, int] = {}
    for option in options:
        read = [value for value, _ in option.reads]
        widths.update({value: max(read.count(value), widths.get(value, 0)) for value in read})
    operands = tuple(value for value, width in widths.items() for _ in range(width))
    variants = (Variant(_reads(o, widths), _writes(o, results), o.price) for o in options)
    return Operator(name, operands, results, tuple(variants))


def _reads(option: Option, widths: dict[int, int]) -> tuple[int, ...]:
    """An order per operand; where another option wants a value in more orders, the last repeats."""
    orders: list[int] = []
    for value, width in widths.items():
        wanted = [order for read, order in option.reads if read == value]
        orders += [*wanted, *[wanted[-1]] * (width - len(wanted))]
    return tuple(orders)


def _writes(option: Option, results: tuple[int, ...]) -> tuple[int, ...]:
    written = dict(option.writes)
    return tuple(written[value] for value in results)
