"""Certificates as JSON data, and back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from relayout.assign.assignment import Assignment
from relayout.assign.component import (
    Branch,
    Component,
    ComponentValue,
    Decided,
    Leaf,
    Member,
    Option,
    Persistency,
    Persistent,
    Proof,
)
from relayout.assign.problem import CopyPrice

Json: TypeAlias = Any
"""Whatever a JSON file holds."""


def certificate(assignment: Assignment) -> dict[str, Json]:
    """The whole reason why a choice is as good as claimed, to be checked by anyone."""
    return {
        "cost": assignment.cost,
        "bound": assignment.bound,
        "components": [_encode(part) for part in assignment.parts],
    }


def _encode(part: Decided) -> dict[str, Json]:
    return {
        "kind": part.kind,
        "operators": [
            {
                "operator": member.operator,
                "name": member.name,
                "home": member.home,
                "options": [[*option[:2], *map(_lists, option[2:])] for option in member.options],
                "chosen": chosen,
            }
            for member, chosen in zip(part.component.members, part.chosen, strict=True)
        ],
        "values": [
            {
                "value": value.value,
                "name": value.name,
                "orders": list(value.orders),
                "copy_price": _encode_price(value.copy_price),
            }
            for value in part.component.values
        ],
        "cost": part.cost,
        "bound": part.bound,
        "proof": _encode_proof(part.proof),
    }


def _encode_price(copy_price: CopyPrice) -> Json:
    return copy_price if isinstance(copy_price, int) else _lists(copy_price)


def _encode_proof(proof: Proof) -> dict[str, Json]:
    if isinstance(proof, Leaf):
        return {
            "scale": proof.scale,
            "offers": [[value, _lists(offers)] for value, offers in proof.offers.items()],
            "shares": [[value, _lists(shares)] for value, shares in proof.shares.items()],
        }
    if isinstance(proof, Persistent):
        return {
            "steps": [_encode_step(step) for step in proof.steps],
            "parts": [_encode(part) for part in proof.parts],
        }
    cases = [[list(options), _encode_proof(case)] for options, case in proof.cases]
    return {"member": proof.member, "cases": cases}


def _encode_step(step: Persistency) -> dict[str, Json]:
    proof = _encode_proof(step.proof)
    return {"ports": _lists(step.ports), "members": list(step.members), "proof": proof}


def _lists(rows: Iterable[Sequence[int]]) -> list[list[int]]:
    return [list(row) for row in rows]


def decode(data: Mapping[str, Json]) -> Decided:
    """One component of a certificate; raises ValueError, TypeError or KeyError on anything else."""
    members = tuple(_decode_member(each) for each in data["operators"])
    values = [_decode_value(each) for each in data["values"]]
    component = Component(members, _with_ports(members, values))
    chosen = tuple(_integer(each["chosen"]) for each in data["operators"])
    if any(not 0 <= c < len(m.options) for c, m in zip(chosen, members, strict=True)):
        raise ValueError("a chosen option does not exist")
    cost, bound = _integer(data["cost"]), _integer(data["bound"])
    return Decided(component, chosen, cost, bound, str(data["kind"]), _decode_proof(data["proof"]))


def _decode_member(data: Mapping[str, Json]) -> Member:
    options = tuple(
        Option(_integer(variant), _integer(price), _rows(reads, 2), _rows(writes, 2))
        for variant, price, reads, writes in data["options"]
    )
    if not options:
        raise ValueError("an operator has no option")
    return Member(_integer(data["operator"]), str(data["name"]), data["home"] is True, options)


def _decode_value(data: Mapping[str, Json]) -> ComponentValue:
    orders = tuple(map(str, data["orders"]))
    price = data["copy_price"]
    copy_price = _rows(price, len(orders)) if isinstance(price, list) else _integer(price)
    if isinstance(copy_price, tuple) and len(copy_price) != len(orders):
        raise ValueError("a table of copy prices is not square")
    lowest = copy_price if isinstance(copy_price, int) else min(map(min, copy_price))
    if lowest < 0:
        raise ValueError("a copy price is negative")
    return ComponentValue(_integer(data["value"]), str(data["name"]), orders, copy_price, -1, ())


def _with_ports(
    members: Sequence[Member], values: Sequence[ComponentValue]
) -> tuple[ComponentValue, ...]:
    """The values with their producers and readers, which the options of the members name."""
    producers = [-1] * len(values)
    readers: list[dict[int, None]] = [{} for _ in values]
    for index, member in enumerate(members):
        for value in sorted({value for value, _ in member.options[0].writes}):
            if producers[value] >= 0:
                raise ValueError("a value is made twice")
            producers[value] = index
        for value in sorted({value for option in member.options for value, _ in option.reads}):
            readers[value][index] = None
        for option in member.options:
            _check_option(option, member.options[0], values)
    if -1 in producers:
        raise ValueError("a value is made by no operator")
    ported = zip(values, producers, readers, strict=True)
    return tuple(v._replace(producer=p, readers=tuple(r)) for v, p, r in ported)


def _check_option(option: Option, first: Option, values: Sequence[ComponentValue]) -> None:
    for value, order in option.reads + option.writes:
        if not (0 <= value < len(values) and 0 <= order < len(values[value].orders)):
            raise ValueError("an option names no value or no order")
    written = [value for value, _ in option.writes]
    if sorted(written) != sorted({value for value, _ in first.writes}):
        raise ValueError("the options of an operator make different values")
    if option.price < 0 or len(set(option.reads)) != len(option.reads):
        raise ValueError("an option has a negative price or wants an order twice")


def _decode_proof(data: Mapping[str, Json]) -> Proof:
    if "cases" in data:
        cases = [(tuple(map(_integer, o)), _decode_proof(case)) for o, case in data["cases"]]
        return Branch(_integer(data["member"]), tuple(cases))
    if "steps" in data:
        steps = tuple(_decode_step(step) for step in data["steps"])
        return Persistent(steps, tuple(map(decode, data["parts"])))
    offers = {_integer(value): _rows(rows, 3) for value, rows in data["offers"]}
    shares = {_integer(value): _rows(rows, 4) for value, rows in data["shares"]}
    return Leaf(_integer(data["scale"]), offers, shares)


def _decode_step(data: Mapping[str, Json]) -> Persistency:
    members = tuple(map(_integer, data["members"]))
    return Persistency(_rows(data["ports"], 2), members, _decode_proof(data["proof"]))


def _rows(rows: Sequence[Sequence[Json]], width: int) -> tuple[Any, ...]:
    """Tuples of integers of one width."""
    if any(len(row) != width for row in rows):
        raise ValueError(f"a row has not {width} entries")
    return tuple(tuple(map(_integer, row)) for row in rows)


def _integer(item: Json) -> int:
    if type(item) is not int:
        raise TypeError(f"{item!r} is not an integer")
    return item
