"""Sums and products in one form, whatever their association: only rounding tells such apart.

Where rounding may change, a sum of sums is one sum, its constants are added up, and a factor that
its first operand has stands before the whole; products likewise. Otherwise operators are taken as
they are written.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from relayout.verify.proof.constants import constant
from relayout.verify.proof.frames import combined
from relayout.verify.proof.openings import Making, opened
from relayout.verify.proof.operators.elementwise import broadcast
from relayout.verify.proof.pieces import FREE, Dim, free
from relayout.verify.proof.table import TermTable, TermValue
from relayout.verify.proof.views import array_of

Array = np.ndarray[Any, Any]
Scaled = tuple[float, TermValue]
"""A factor and what it stands before."""

ADD = ("each", ("Add", frozenset[Hashable]()))
MULTIPLY = ("each", ("Mul", frozenset[Hashable]()))
SUM_KIND, PRODUCT_KIND = "sum", "product"
# Operands of one sum or product, at most, and elements of a constant that is put together.
MOST_OPERANDS = 64
MOST_ELEMENTS = 1 << 22


def scaled(table: TermTable, value: TermValue, factor: float) -> TermValue:
    """The value times a number."""
    if factor == 1:
        return value
    before, inner = factor_of(table, value)
    if before != 1 and table.step("factors put together"):
        return scaled(table, inner, before * factor)
    number = table.factor(float(factor)).hex()  # the bits: 0.0 and -0.0 are two factors
    return replace(value, term=table.term("scaled", value.term, number), data=None)


def factor_of(table: TermTable, value: TermValue) -> Scaled:
    """The number by which a value is scaled, and what is scaled."""
    key = table.terms[value.term]
    if key[0] != "scaled":
        return 1.0, value
    inner, number = key[1:]
    assert isinstance(inner, int)
    assert isinstance(number, str)
    return float.fromhex(number), replace(value, term=inner)


def added(table: TermTable, operands: Sequence[TermValue]) -> TermValue:
    """The sum of values that are broadcast against each other."""
    columns = broadcast(table, operands)
    if table.ledger is None or any(column.ordered for column in columns):
        return combined(table, ADD, operands, columns, commutative=True)
    addends = [one for value in operands for one in _flattened(table, SUM_KIND, value)]
    if len(addends) > MOST_OPERANDS:
        addends = [factor_of(table, value) for value in operands]
    addends = [(factor, _of_rank(value, len(columns))) for factor, value in addends]
    fixed = [one for one in addends if _is_float_constant(table, one[1])]
    others = [one for one in addends if one not in fixed]
    lead = (min(others, key=lambda one: one[1].term)[0] if others else 1.0) or 1.0
    parts = [scaled(table, value, factor / lead) for factor, value in others]
    parts += _total(table, [(factor / lead, value) for factor, value in fixed])
    return scaled(table, _made(table, ADD, SUM_KIND, parts), lead)


def multiplied(table: TermTable, operands: Sequence[TermValue]) -> TermValue:
    """The product of values that are broadcast against each other."""
    columns = broadcast(table, operands)
    if table.ledger is None or any(column.ordered for column in columns):
        return combined(table, MULTIPLY, operands, columns, commutative=True)
    parts = [one for value in operands for one in _flattened(table, PRODUCT_KIND, value)]
    if len(parts) > MOST_OPERANDS:
        parts = [factor_of(table, value) for value in operands]
    whole = float(np.prod([factor for factor, _ in parts]))
    values = [_of_rank(value, len(columns)) for _, value in parts]
    fixed = [value for value in values if _is_float_constant(table, value)]
    others = [value for value in values if value not in fixed]
    numbers = [value for value in fixed if _is_number(table, value, others)]
    for value in numbers:
        whole *= float(table.arrays[value.term][0])
    fixed = [value for value in fixed if value not in numbers]
    values = [*others, *_common_factor(table, fixed)]
    return scaled(table, _made(table, MULTIPLY, PRODUCT_KIND, values), whole)


def _flattened(table: TermTable, kind: str, value: TermValue) -> list[Scaled]:
    """The operands of a sum or product, or the value itself, with their factors."""
    factor, bare = factor_of(table, value)
    parts = opened(table, kind, bare)
    if parts is None:
        return [(factor, bare)]
    table.step(f"{kind}s in another association")
    if kind == SUM_KIND:
        return [(factor * own, inner) for own, inner in (factor_of(table, one) for one in parts)]
    return [(factor, parts[0]), *((1.0, one) for one in parts[1:])]


def _made(table: TermTable, key: tuple[Any, ...], kind: str, parts: list[TermValue]) -> TermValue:
    if len(parts) == 1:
        return parts[0]
    result = combined(table, key, parts, broadcast(table, parts), commutative=True)
    table.makings.setdefault(result.term, Making(kind, result.known_dims, tuple(parts)))
    return result


def _of_rank(value: TermValue, rank: int) -> TermValue:
    return TermValue(value.term, ((),) * (rank - value.rank) + value.known_dims)


def _is_float_constant(table: TermTable, value: TermValue) -> bool:
    array = table.arrays.get(value.term)
    return array is not None and array.dtype.kind == "f"


def _is_number(table: TermTable, value: TermValue, others: Sequence[TermValue]) -> bool:
    """Whether a constant is one number other than 0, and makes none of the others longer."""
    array = table.arrays[value.term]
    lengths = zip(value.shape, *(other.shape for other in others), strict=True)
    return array.size == 1 and array[0] != 0 and all(n in (1, *rest) for n, *rest in lengths)


def _total(table: TermTable, fixed: Sequence[Scaled]) -> list[TermValue]:
    """The sum of scaled constants, as one constant unless it would be too large."""
    if not fixed or (len(fixed) == 1 and fixed[0][0] == 1):
        return [value for _, value in fixed]
    arrays = _aligned_arrays(table, [value for _, value in fixed])
    if arrays is None:
        return [scaled(table, value, factor) for factor, value in fixed]
    if len(fixed) > 1:
        table.step("constants added up")
    with np.errstate(all="ignore"):
        numbers = [
            array.astype(np.float64) * f for array, (f, _) in zip(arrays, fixed, strict=True)
        ]
        total = sum(numbers[1:], start=numbers[0]).astype(arrays[0].dtype)
    return [_spread(constant(table, total), [value for _, value in fixed])]


def _common_factor(table: TermTable, fixed: Sequence[TermValue]) -> list[TermValue]:
    """The product of constants, as one constant unless it would be too large."""
    arrays = _aligned_arrays(table, fixed) if len(fixed) > 1 else None
    if arrays is None:
        return list(fixed)
    table.step("factors put together")
    with np.errstate(all="ignore"):
        total = np.ones((), np.float64)
        for array in arrays:
            total = total * array
    return [_spread(constant(table, total), fixed)]


def _aligned_arrays(table: TermTable, values: Sequence[TermValue]) -> list[Array] | None:
    """The numbers of constants, each once where it does not change along a dimension."""
    once = [value.with_dims([_once(dim) for dim in value.known_dims]) for value in values]
    if any(not isinstance(length, int) for value in once for length in value.shape):
        return None
    shapes = [tuple(int(str(length)) for length in value.shape) for value in once]
    if np.prod(np.broadcast_shapes(*shapes), dtype=float) > MOST_ELEMENTS:
        return None
    return [array_of(table, value) for value in once]


def _once(dim: Dim) -> Dim:
    return () if all(piece.base == FREE for piece in dim) else dim


def _spread(value: TermValue, over: Sequence[TermValue]) -> TermValue:
    """The value, as long as the others along dimensions in which all of them stay the same."""
    dims = []
    for axis, dim in enumerate(value.known_dims):
        lengths = [other.shape[axis] for other in over if other.shape[axis] != 1]
        dims.append(dim if dim or not lengths else free(lengths[0]))
    return value.with_dims(dims)
