"""Sums and products of values, and by one constant number, whatever the operator used for them."""

from __future__ import annotations

from relayout.verify.proof.call import NodeCall, Rule
from relayout.verify.proof.operators.arithmetic import with_data
from relayout.verify.proof.operators.elementwise import elementwise, refuse_old_broadcast
from relayout.verify.proof.operators.linear import added, multiplied, scaled
from relayout.verify.proof.table import TermTable, TermValue


def _add(call: NodeCall) -> list[TermValue]:
    refuse_old_broadcast(call)
    return [with_data(call, added(call.table, call.present()))]


def _sum(call: NodeCall) -> list[TermValue]:
    if len(call.operands) == 1:
        return [call.operand(0)]
    if len(call.operands) == 2 or call.table.ledger is not None:
        return _add(call)
    key = ("Sum", call.settings())
    return [elementwise(call.table, key, call.present(), commutative=True)]


def _subtract(call: NodeCall) -> list[TermValue]:
    refuse_old_broadcast(call)
    left, right = call.operand(0), call.operand(1)
    if call.table.ledger is None or (left.data is not None and right.data is not None):
        result = elementwise(call.table, ("Sub", call.settings()), [left, right])
        return [with_data(call, result)]
    return [added(call.table, [left, scaled(call.table, right, -1.0)])]


def _negate(call: NodeCall) -> list[TermValue]:
    value = call.operand(0)
    if call.table.ledger is None:
        return [elementwise(call.table, ("Neg", call.settings()), [value])]
    return [scaled(call.table, value, -1.0)]


def _multiply(call: NodeCall) -> list[TermValue]:
    refuse_old_broadcast(call)
    left, right = call.operand(0), call.operand(1)
    for value, number in ((left, right), (right, left)):
        factor = _number(call.table, number)
        if factor is not None and number.rank <= value.rank and value.data is None:
            return [scaled(call.table, value, factor)]
    return [with_data(call, multiplied(call.table, [left, right]))]


def _divide(call: NodeCall) -> list[TermValue]:
    refuse_old_broadcast(call)
    value, number = call.operand(0), call.operand(1)
    divisor = _number(call.table, number)
    if divisor and number.rank <= value.rank and call.table.step(QUOTIENTS):
        return [scaled(call.table, value, 1 / divisor)]
    if _is_root(call.table, number) and call.table.step(QUOTIENTS):
        inverse = elementwise(call.table, ("Reciprocal", frozenset()), [number])
        return [multiplied(call.table, [value, inverse])]
    return [with_data(call, elementwise(call.table, ("Div", call.settings()), [value, number]))]


def _power(call: NodeCall) -> list[TermValue]:
    refuse_old_broadcast(call)
    value, number = call.operand(0), call.operand(1)
    exponent = _number(call.table, number) if number.rank <= value.rank else None
    if exponent in POWERS and call.table.step("powers as products"):
        return [multiplied(call.table, [value] * int(exponent))]
    return [elementwise(call.table, ("Pow", call.settings()), [value, number])]


POWERS = (2.0, 3.0)
QUOTIENTS = "quotients as products"


def _is_root(table: TermTable, value: TermValue) -> bool:
    """Whether it is a square root, so that numbers and not whole numbers are divided."""
    return table.terms[value.term][:2] == ("each", ("Sqrt", frozenset()))


def _number(table: TermTable, value: TermValue) -> float | None:
    """The one floating-point number that a constant holds."""
    array = table.arrays.get(value.term)
    if array is None or array.size != 1 or value.pieces or array.dtype.kind != "f":
        return None
    return float(array[0]) or None


RULES: dict[tuple[str, str], Rule] = {
    ("", "Add"): _add,
    ("", "Sum"): _sum,
    ("", "Sub"): _subtract,
    ("", "Neg"): _negate,
    ("", "Mul"): _multiply,
    ("", "Div"): _divide,
    ("", "Pow"): _power,
}
