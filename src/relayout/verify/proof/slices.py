"""Parts of axes, in one form whatever the order in which they are cut out."""

from __future__ import annotations

from collections.abc import Hashable
from math import gcd

from relayout.verify.proof.constants import constant
from relayout.verify.proof.lengths import Length
from relayout.verify.proof.pieces import FREE, Dim, coalesced, cut, extent, free
from relayout.verify.proof.table import Table, Value
from relayout.verify.proof.views import array_of


def cut_out(
    table: Table, value: Value, axis: int, start: Hashable, step: int, length: Length
) -> Value:
    """Every `step`-th element from `start` on, `length` of them."""
    dims = list(value.known_dims)
    dim, whole = dims[axis], value.shape[axis]
    if start == 0 and step == 1 and length == whole:
        return value
    if all(piece.base == FREE for piece in dim):
        dims[axis] = free(length)
        return Value(value.term, tuple(dims))
    known = isinstance(start, int) and all(isinstance(n, int) for n in (*value.shape, length))
    if known and value.term in table.arrays:
        return _cut_constant(table, value, axis, start, step, length)  # type: ignore[arg-type]
    outer, inner = _outer_part(dim, start, step, length)
    part = (start, step, length)
    if inner and isinstance(start, int) and isinstance(length, int):
        size = extent(inner)
        assert isinstance(size, int)
        part = (start // size, step, length // size)
    term, left = _cut(table, value.term, outer, part)
    dims[axis] = coalesced((*left, *inner))
    return Value(term, tuple(dims))


def _outer_part(dim: Dim, start: Hashable, step: int, length: Length) -> tuple[Dim, Dim]:
    """The dimension in two of which only the first is cut: a run of blocks is a part of blocks."""
    whole = extent(dim)
    if step != 1 or not all(isinstance(n, int) for n in (start, length, whole)):
        return dim, ()
    block = gcd(start, length, whole)  # type: ignore[arg-type]
    groups = cut(dim, [whole // block, block]) if block > 1 else None  # type: ignore[operator]
    return (groups[0], groups[1]) if groups else (dim, ())


Part = tuple[Hashable, int, Length]


def _cut(table: Table, term: int, dim: Dim, part: Part) -> tuple[int, Dim]:
    before = table.terms[term]
    if before[0] == "slice":
        inner, other, first = before[1:]
        result = _index(table, other, first)  # type: ignore[arg-type]
        if dim == result and _composed(first, part):  # type: ignore[arg-type]
            return _cut(table, inner, other, _composed(first, part))  # type: ignore[arg-type]
        apart = not {p.base for p in dim} & {p.base for p in result}
        if apart and _rank(dim) < _rank(other):  # type: ignore[arg-type]
            moved, made = _cut(table, inner, dim, part)  # type: ignore[arg-type]
            return table.term("slice", moved, other, first), made
    return table.term("slice", term, dim, part), _index(table, dim, part)


def _index(table: Table, dim: Dim, part: Part) -> Dim:
    return table.axis(part[2], "part", dim, part)


def _composed(first: Part, second: Part) -> Part | None:
    if not isinstance(first[0], int) or not isinstance(second[0], int):
        return None
    return first[0] + first[1] * second[0], first[1] * second[1], second[2]


def _rank(dim: Dim) -> Hashable:
    return tuple((piece.base, str(piece.stride)) for piece in dim)


def _cut_constant(
    table: Table, value: Value, axis: int, start: int, step: int, length: int
) -> Value:
    array = array_of(table, value)
    stop: int | None = start + step * length
    index: list[slice] = [slice(None)] * array.ndim
    index[axis] = slice(start, None if stop is not None and stop < 0 else stop, step)
    return constant(table, array[tuple(index)])
