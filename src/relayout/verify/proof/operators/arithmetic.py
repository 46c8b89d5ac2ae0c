"""The arithmetic of elementwise operators on whole numbers that are known, such as lengths."""

from __future__ import annotations

from collections.abc import Callable

from relayout.verify.proof.call import NodeCall
from relayout.verify.proof.constants import of_data
from relayout.verify.proof.lengths import (
    ANY,
    Length,
    floor,
    minus,
    nonnegative,
    plus,
    symbol,
    times,
)
from relayout.verify.proof.table import Data, TermValue

Arithmetic = Callable[[Length, Length], Length]


def _divided(left: Length, right: Length) -> Length:
    if isinstance(right, int) and right > 0 and nonnegative(left):
        return floor(left, right)
    return _unknown("div", left, right)


def _remainder(left: Length, right: Length) -> Length:
    if isinstance(right, int) and right > 0 and nonnegative(left):
        return minus(left, times(right, floor(left, right)))
    return _unknown("mod", left, right)


def _larger(left: Length, right: Length) -> Length:
    if nonnegative(minus(left, right)):
        return left
    if nonnegative(minus(right, left)):
        return right
    name = f"max({min(str(left), str(right))}, {max(str(left), str(right))})"
    return symbol(name if nonnegative(left) or nonnegative(right) else ANY + name)


def _smaller(left: Length, right: Length) -> Length:
    return minus(plus(left, right), _larger(left, right))


def _unknown(name: str, *numbers: Length) -> Length:
    sign = "" if all(map(nonnegative, numbers)) else ANY
    return symbol(f"{sign}{name}({', '.join(map(str, numbers))})")


def _equal(left: Length, right: Length) -> Length:
    if left == right:
        return 1
    difference = minus(left, right)
    apart = nonnegative(minus(difference, 1)) or nonnegative(minus(minus(0, difference), 1))
    return 0 if apart else _unknown("equal", left, right)


ARITHMETIC: dict[str, Arithmetic] = {
    "Add": plus,
    "Sub": minus,
    "Mul": times,
    "Div": _divided,
    "Mod": _remainder,
    "Max": _larger,
    "Min": _smaller,
    "Equal": _equal,
}


def with_data(call: NodeCall, result: TermValue) -> TermValue:
    """The result as known whole numbers, where the operands are."""
    operands = call.present()
    if any(value.data is None for value in operands) or len(result.known_dims) > 1:
        return result
    shape = result.shape
    count = shape[0] if shape else 1
    if not isinstance(count, int):
        return result
    data = _computed(call, [_spread(value, count) for value in operands])
    return result if data is None else of_data(call.table, data, shape)


def _computed(call: NodeCall, rows: list[tuple[Length, ...]]) -> Data | None:
    name, kinds = call.node.op_type, [v.data.kind for v in call.present() if v.data is not None]
    if name in ARITHMETIC and len(rows) == 2 and not call.attribute("fmod", 0):
        kind = "bool" if name == "Equal" else kinds[0]
        return Data(kind, tuple(ARITHMETIC[name](*pair) for pair in zip(*rows, strict=True)))
    if name == "Where" and all(n in (0, 1) for n in rows[0]):
        chosen = zip(*rows, strict=True)
        return Data(kinds[1], tuple(one if test else other for test, one, other in chosen))
    return None


def _spread(value: TermValue, count: int) -> tuple[Length, ...]:
    assert value.data is not None
    elements = value.data.elements
    return elements * count if len(elements) == 1 else elements
