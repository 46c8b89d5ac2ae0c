"""Parts of axes, in one form whatever the order in which they are cut out."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from math import gcd
from typing import NamedTuple

import numpy as np

from relayout.verify.proof.constants import constant
from relayout.verify.proof.lengths import Length
from relayout.verify.proof.pieces import FREE, Dim, Piece, coalesced, cut, extent, free
from relayout.verify.proof.table import TermTable, TermValue
from relayout.verify.proof.views import array_of


class AxisPart(NamedTuple):
    """Every `step`-th element from `start` on, `length` of them.

    Of an open length `start` is whatever tells which part is meant, such as (start, end).
    """

    start: Hashable
    step: int
    length: Length


@dataclass(frozen=True)
class Slice:
    """A term of which a part of a dimension is taken."""

    term: int
    dim: Dim
    part: AxisPart


def cut_out(table: TermTable, value: TermValue, axis: int, part: AxisPart) -> TermValue:
    """The value with a part of one of its dimensions."""
    dims = list(value.known_dims)
    dim = dims[axis]
    if part == (0, 1, value.shape[axis]):
        return value
    if all(piece.base == FREE for piece in dim):
        dims[axis] = free(part.length)
        return TermValue(value.term, tuple(dims))
    if value.term in table.arrays and all(isinstance(n, int) for n in (part.start, *value.shape)):
        return _cut_constant(table, value, axis, part)
    outer, inner, part = _outer_part(dim, part)
    wanted = Slice(value.term, outer, part)
    term, left = _cut(table, wanted)
    others = _bases(piece for d, other in enumerate(dims) if d != axis for piece in other)
    if _bases(left) & others:  # the same part of the same index, taken before: not this one
        term = table.term("another part", wanted)
        left = table.axis(part.length, "another part", wanted)
    dims[axis] = coalesced((*left, *inner))
    return TermValue(term, tuple(dims))


def _outer_part(dim: Dim, part: AxisPart) -> tuple[Dim, Dim, AxisPart]:
    """The dimension in two of which only the first is cut: a run of blocks is a part of blocks."""
    (start, step, length), whole = part, extent(dim)
    numbers = isinstance(start, int) and isinstance(length, int) and isinstance(whole, int)
    if step != 1 or not numbers:
        return dim, (), part
    assert isinstance(start, int)
    assert isinstance(length, int)
    assert isinstance(whole, int)
    block = gcd(start, length, whole)
    groups = cut(dim, [whole // block, block]) if block > 1 else None
    if groups is None:
        return dim, (), part
    return groups[0], groups[1], AxisPart(start // block, 1, length // block)


def _cut(table: TermTable, wanted: Slice) -> tuple[int, Dim]:
    """The term of a part and the index that counts it.

    Parts of parts are put together, and parts of several dimensions are taken in one order.
    """
    before = table.terms[wanted.term]
    if isinstance(before[0], Slice):
        first, index = before[0], _index(table, before[0])
        both = _composed(first.part, wanted.part)
        if wanted.dim == index and both is not None:
            return _cut(table, Slice(first.term, first.dim, both))
        if _may_go_first(table, wanted, first, index):
            moved, made = _cut(table, Slice(first.term, wanted.dim, wanted.part))
            return table.term(Slice(moved, first.dim, first.part)), made
    return table.term(wanted), _index(table, wanted)


def _may_go_first(table: TermTable, wanted: Slice, first: Slice, index: Dim) -> bool:
    """Whether a part of another dimension may be taken, and is to be taken, before `first`."""
    if _rank(wanted.dim) >= _rank(first.dim) or _bases(wanted.dim) & _bases(index):
        return False
    # The index of the part must not be one that is there until `first` is taken.
    return not _bases(_index(table, wanted)) & _bases(first.dim)


def _index(table: TermTable, made: Slice) -> Dim:
    return table.axis(made.part.length, "part", made.dim, made.part)


def _composed(first: AxisPart, second: AxisPart) -> AxisPart | None:
    if not isinstance(first.start, int) or not isinstance(second.start, int):
        return None
    start = first.start + first.step * second.start
    return AxisPart(start, first.step * second.step, second.length)


def _bases(pieces: Iterable[Piece]) -> set[int]:
    return {piece.base for piece in pieces}


def _rank(dim: Dim) -> tuple[tuple[int, str], ...]:
    return tuple((piece.base, str(piece.stride)) for piece in dim)


def _cut_constant(table: TermTable, value: TermValue, axis: int, part: AxisPart) -> TermValue:
    start, step, length = part
    assert isinstance(start, int)
    assert isinstance(length, int)
    places = [start + step * i for i in range(length)]
    return constant(table, np.take(array_of(table, value), places, axis))
