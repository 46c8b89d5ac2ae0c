"""Mul and Div by one constant number: a factor, whatever the operator that is used for it."""

from __future__ import annotations

from relayout.verify.proof.call import NodeCall, Rule
from relayout.verify.proof.operators.arithmetic import with_data
from relayout.verify.proof.operators.contractions import scaled
from relayout.verify.proof.operators.elementwise import elementwise, refuse_old_broadcast
from relayout.verify.proof.table import TermTable, TermValue


def _multiply(call: NodeCall) -> list[TermValue]:
    refuse_old_broadcast(call)
    left, right = call.operand(0), call.operand(1)
    for value, number in ((left, right), (right, left)):
        factor = _number(call.table, number)
        if factor is not None and number.rank <= value.rank and value.data is None:
            return [scaled(call.table, value, factor)]
    key = ("Mul", call.settings())
    return [with_data(call, elementwise(call.table, key, [left, right], commutative=True))]


def _divide(call: NodeCall) -> list[TermValue]:
    refuse_old_broadcast(call)
    value, number = call.operand(0), call.operand(1)
    divisor = _number(call.table, number)
    if divisor and number.rank <= value.rank and call.table.step("quotients as products"):
        return [scaled(call.table, value, 1 / divisor)]
    return [with_data(call, elementwise(call.table, ("Div", call.settings()), [value, number]))]


def _number(table: TermTable, value: TermValue) -> float | None:
    """The one floating-point number that a constant holds."""
    array = table.arrays.get(value.term)
    if array is None or array.size != 1 or value.pieces or array.dtype.kind != "f":
        return None
    return float(array[0]) or None


RULES: dict[tuple[str, str], Rule] = {
    ("", "Mul"): _multiply,
    ("", "Div"): _divide,
}
