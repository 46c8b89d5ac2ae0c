"""What a component costs, and what a proof shows it must cost at least, in exact integers.

The lower bound, for a value stored in order `s` and wanted in the orders `W`: its copies cost the
sum of `price(s, w)` over `w` in `W`. Split each price among the readers that may want `w` (the
shares). Then the copies cost at least what the readers that do want something carry. A reader is
charged its offers instead, so that its charge does not depend on `s`; the producer is charged the
least difference between shares and offers over what the reader may want. Now every member has a
price per option that depends on its own option alone, and the minima add up to a bound.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from relayout.assign.component import (
    Branch,
    Component,
    ComponentValue,
    Leaf,
    Member,
    Offer,
    Persistency,
    Persistent,
    Proof,
    Share,
)
from relayout.assign.coverage import differences
from relayout.assign.problem import price_between
from relayout.assign.questions import Allowed, UnsoundError, as_problem, one_against_rest

_Amounts: TypeAlias = dict[int, dict[int, int]]
"""By member, by option; by reader, by order."""


def cost_of(component: Component, chosen: Sequence[int]) -> int:
    """The cost of one option per member."""
    cost = 0
    stored: dict[int, int] = {}
    wanted: dict[int, dict[int, None]] = {}
    for member, option in zip(component.members, chosen, strict=True):
        _, price, reads, writes = member.options[option]
        cost += price
        stored.update(writes)
        for value, order in reads:
            wanted.setdefault(value, {})[order] = None
    for value, orders in wanted.items():
        copy_price, made = component.values[value].copy_price, stored[value]
        cost += sum(price_between(copy_price, made, order) for order in orders if order != made)
    return cost


def bound_of(component: Component, proof: Proof) -> int:
    """The lower bound a proof shows; raises UnsoundError where it shows none."""
    lowest: int | None = None
    todo: list[tuple[Proof, Allowed]] = [(proof, every_option(component))]
    while todo:
        node, allowed = todo.pop()
        if isinstance(node, Branch):
            todo += _cases(node, allowed)
            continue
        if isinstance(node, Leaf):
            bound = leaf_bound(component, node, allowed)
        else:
            bound = _persistent_bound(component, node, allowed)
        lowest = bound if lowest is None else min(lowest, bound)
    if lowest is None:
        raise UnsoundError("the proof has no leaf")
    return lowest


def _cases(node: Branch, allowed: Allowed) -> list[tuple[Proof, Allowed]]:
    if not 0 <= node.member < len(allowed):
        raise UnsoundError("a branch names no member")
    covered = {option for options, _ in node.cases for option in options}
    if not covered.issuperset(allowed[node.member]):
        raise UnsoundError("the cases of a branch leave out an option")
    return [(case, restricted(allowed, node.member, options)) for options, case in node.cases]


def _persistent_bound(component: Component, proof: Persistent, allowed: Allowed) -> int:
    for step in proof.steps:
        allowed = after_step(component, allowed, step)
    faults = differences(as_problem(component, allowed), proof.parts)
    if faults:
        raise UnsoundError(faults[0])
    return sum(bound_of(part.component, part.proof) for part in proof.parts)


def after_step(component: Component, allowed: Allowed, step: Persistency) -> Allowed:
    """The options left when the members of a step keep its label; checks that they may."""
    question = one_against_rest(component, allowed, step.ports)
    kept = set(step.members)
    chosen = [
        0 if index in kept or len(member.options) == 1 else 1
        for index, member in enumerate(question.members)
    ]
    if bound_of(question, step.proof) != cost_of(question, chosen):
        raise UnsoundError("a step does not prove that its members keep their label")
    options = list(allowed)
    for index in step.members:
        if not 0 <= index < len(options) or not question.members[index].home:
            raise UnsoundError("a step names a member that cannot have its label")
        options[index] = (question.members[index].options[0].variant,)
    return options


def every_option(component: Component) -> Allowed:
    return [tuple(range(len(member.options))) for member in component.members]


def restricted(allowed: Allowed, member: int, options: tuple[int, ...]) -> Allowed:
    """The same, with fewer options for one member."""
    kept = tuple(option for option in allowed[member] if option in options)
    if not kept:
        raise UnsoundError("a case of a branch leaves no option")
    return [*allowed[:member], kept, *allowed[member + 1 :]]


def leaf_bound(component: Component, leaf: Leaf, allowed: Allowed) -> int:
    """The bound of one leaf, rounded up, as all costs are integers."""
    if leaf.scale < 1:
        raise UnsoundError("the scale is not positive")
    prices: _Amounts = {
        index: {option: leaf.scale * member.options[option].price for option in allowed[index]}
        for index, member in enumerate(component.members)
    }
    for value in {**leaf.offers, **leaf.shares}:
        if not 0 <= value < len(component.values):
            raise UnsoundError("a multiplier names no value")
        _charge(component, leaf, value, prices)
    total = sum(min(options.values()) for options in prices.values())
    return -(-total // leaf.scale)


def _charge(component: Component, leaf: Leaf, index: int, prices: _Amounts) -> None:
    """Move the price of one value's copies to the prices of the members that touch it."""
    value = component.values[index]
    offers = _by_reader(leaf.offers.get(index, ()))
    shares = _by_stored(leaf.shares[index]) if index in leaf.shares else None
    readers = list(
        dict.fromkeys([*offers, *(reader for each in (shares or {}).values() for reader in each)])
    )
    if any(not 0 <= reader < len(component.members) for reader in readers):
        raise UnsoundError("a multiplier names no reader")
    wants = {reader: _wants(component.members[reader], index, prices[reader]) for reader in readers}
    for reader, cases in wants.items():
        for option, orders in cases.items():
            prices[reader][option] += _sum(offers.get(reader, {}), orders)
    for option in prices[value.producer]:
        stored = dict(component.members[value.producer].options[option].writes)[index]
        carried = _without(offers, stored) if shares is None else shares.get(stored, {})
        _check_shares(value, stored, carried, leaf.scale)
        for reader, cases in wants.items():
            carries, offered = carried.get(reader, {}), offers.get(reader, {})
            if carries == offered:
                continue
            least = min(_sum(carries, orders) - _sum(offered, orders) for orders in cases.values())
            prices[value.producer][option] += least


def _check_shares(value: ComponentValue, stored: int, shares: _Amounts, scale: int) -> None:
    totals: dict[int, int] = {}
    for orders in shares.values():
        for order, amount in orders.items():
            if amount < 0:
                raise UnsoundError(f"a share of {value.name} is negative")
            totals[order] = totals.get(order, 0) + amount
    for order, total in totals.items():
        if not 0 <= order < len(value.orders):
            raise UnsoundError(f"a share of {value.name} names no order")
        price = 0 if order == stored else price_between(value.copy_price, stored, order)
        if total > scale * price:
            raise UnsoundError(f"the shares of {value.name} exceed the price of a copy")


def _wants(member: Member, value: int, options: Iterable[int]) -> dict[int, tuple[int, ...]]:
    """The orders each open option of a member wants a value in."""
    return {
        option: tuple([order for read, order in member.options[option].reads if read == value])
        for option in options
    }


def _sum(amounts: dict[int, int], orders: tuple[int, ...]) -> int:
    return sum([amounts.get(order, 0) for order in orders])


def _without(offers: _Amounts, stored: int) -> _Amounts:
    return {
        reader: {order: amount for order, amount in orders.items() if order != stored}
        if stored in orders
        else orders
        for reader, orders in offers.items()
    }


def _by_reader(entries: Iterable[Offer]) -> _Amounts:
    amounts: _Amounts = {}
    for reader, order, amount in entries:
        orders = amounts.setdefault(reader, {})
        orders[order] = orders.get(order, 0) + amount
    return amounts


def _by_stored(entries: Iterable[Share]) -> dict[int, _Amounts]:
    amounts: dict[int, list[Offer]] = {}
    for stored, *offer in entries:
        amounts.setdefault(stored, []).append((offer[0], offer[1], offer[2]))
    return {stored: _by_reader(offers) for stored, offers in amounts.items()}
