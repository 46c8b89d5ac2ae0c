"""The arithmetic of elementwise operators on whole numbers that are known, such as lengths."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from relayout.verify.proof.call import NodeCall
from relayout.verify.proof.constants import DATA_LIMIT, of_data
from relayout.verify.proof.lengths import (
    ANY,
    Length,
    floor,
    larger,
    minus,
    nonnegative,
    plus,
    smaller,
    symbol,
    times,
)
from relayout.verify.proof.table import Data, TermValue
from relayout.verify.proof.views import array_of

Arithmetic = Callable[[Length, Length], Length]


def _divided(left: Length, right: Length) -> Length:
    if isinstance(right, int) and right > 0 and nonnegative(left):
        return floor(left, right)
    return _unknown("div", left, right)


def _remainder(left: Length, right: Length) -> Length:
    if isinstance(right, int) and right > 0 and nonnegative(left):
        return minus(left, times(right, floor(left, right)))
    return _unknown("mod", left, right)


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
    "Max": larger,
    "Min": smaller,
    "Equal": _equal,
}


# Of whole numbers that are stored as floats only these are whole numbers for sure.
EXACT_ON_FLOATS = ("Max", "Min", "Where")
LARGEST = 2**24
"""Up to this, 32-bit floats hold all whole numbers."""


def with_data(call: NodeCall, result: TermValue) -> TermValue:
    """The result as known whole numbers, where the operands are."""
    operands = [_with_whole_floats(call, value) for value in call.present()]
    if any(value.data is None for value in operands) or len(result.known_dims) > 1:
        return result
    shape = result.shape
    count = shape[0] if shape else 1
    if not isinstance(count, int):
        return result
    data = _computed(call, [(_spread(value, count), _kind(value)) for value in operands])
    return result if data is None else of_data(call.table, data, shape)


def _computed(call: NodeCall, operands: list[tuple[tuple[Length, ...], str]]) -> Data | None:
    name, rows, kinds = call.node.op_type, [row for row, _ in operands], [k for _, k in operands]
    if kinds[-1].startswith("float") and name not in EXACT_ON_FLOATS:
        return None
    if name in ARITHMETIC and len(rows) == 2 and not call.attribute("fmod", 0):
        kind = "bool" if name == "Equal" else kinds[0]
        return Data(kind, tuple(ARITHMETIC[name](*pair) for pair in zip(*rows, strict=True)))
    if name == "Where" and all(n in (0, 1) for n in rows[0]):
        chosen = zip(*rows, strict=True)
        return Data(kinds[1], tuple(one if test else other for test, one, other in chosen))
    return None


def _with_whole_floats(call: NodeCall, value: TermValue) -> TermValue:
    """A constant of few floats that are whole numbers, with these as its data."""
    array = call.table.arrays.get(value.term)
    known = value.data is not None or array is None or value.dims is None or value.rank > 1
    if known or array is None or array.dtype.kind != "f" or array.size > DATA_LIMIT:
        return value
    # In doubles, where no limit is infinite, as it would be among halves.
    stored = array_of(call.table, value).reshape(-1).astype(np.float64)
    if not np.array_equal(stored, np.trunc(stored)) or np.abs(stored).max(initial=0) > LARGEST:
        return value
    return replace(value, data=Data(str(array.dtype), tuple(int(n) for n in stored)))


def _kind(value: TermValue) -> str:
    assert value.data is not None
    return value.data.kind


def _spread(value: TermValue, count: int) -> tuple[Length, ...]:
    assert value.data is not None
    elements = value.data.elements
    return elements * count if len(elements) == 1 else elements
