"""Constants, by content: the same numbers under another order of axes are the same term."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from relayout.verify.proof.canonical import Canonical, canonical, is_uniform
from relayout.verify.proof.contents import Contents
from relayout.verify.proof.lengths import Length
from relayout.verify.proof.parts import forget_pages
from relayout.verify.proof.pieces import FREE, Dim, Piece, extent, free
from relayout.verify.proof.table import Data, NotKnownError, TermTable, TermValue

Array = np.ndarray[Any, Any]

# Whole numbers that are read as lengths, at most.
DATA_LIMIT = 64


@dataclass(frozen=True)
class Numbers:
    """The numbers of a tensor as they are stored, only one of them if all are `alike`."""

    flat: Array
    shape: tuple[int, ...]
    alike: bool
    content: int
    """The number of what `flat` holds."""
    data: Data | None


def constant(table: TermTable, array: Array) -> TermValue:
    """The tensor that holds these numbers: its dimensions count one index, as they are stored."""
    return constant_of(table, numbers_of(table.contents, array))


def numbers_of(contents: Contents, array: Array) -> Numbers:
    is_one_number = array.size > 1 and not any(array.strides)
    flat = array.flat[:1] if is_one_number else np.ascontiguousarray(array).reshape(-1)
    alike = is_one_number or (flat.size > 1 and is_uniform(flat, 0))
    forget_pages(array)
    flat = flat[:1].copy() if alike else flat
    content = contents.number_of(flat)
    forget_pages(array)
    return Numbers(flat, array.shape, alike, content, _data(array))


def constant_of(table: TermTable, numbers: Numbers) -> TermValue:
    flat, shape = numbers.flat, numbers.shape
    if not flat.size and len(shape) > 1:
        return table.opaque(("nothing", str(flat.dtype)), list(shape))
    term = table.term("numbers", numbers.content)
    table.arrays.setdefault(term, flat)
    if numbers.alike:
        return TermValue(term, tuple(free(n) for n in shape), numbers.data)
    dims, stride = [], flat.size
    for n in shape:
        stride = stride // n if n else 0
        dims.append(() if n == 1 else (Piece(table.base("of", term), stride, n),))
    return TermValue(term, tuple(dims), numbers.data)


def settled(table: TermTable, term: int, groups: Sequence[Dim]) -> tuple[int, list[Piece]]:
    """A constant with an axis for each group of its pieces; what each axis counts."""
    places = tuple(tuple((p.base == FREE, p.stride, p.extent) for p in group) for group in groups)
    key = (table.terms[term], places)
    known = table.canonical.get(key)
    if known is None:
        make = partial(arranged, table.arrays[term], groups)
        known = table.canonical[key] = canonical(table.contents, make)
    if table.ledger is not None:
        known = _rounded(table, known, arranged(table.arrays[term], groups))
    forget_pages(table.arrays[term])
    term = table.term("constant", known.dtype, known.shape, known.content)
    pieces = [Piece(table.base("of", term, i), 1, n) for i, n in enumerate(known.shape)]
    lengths = [extent(group) for group in groups]
    return term, [
        Piece(FREE, 0, n) if place is None else pieces[place]
        for n, place in zip(lengths, known.places, strict=True)
    ]


def _rounded(table: TermTable, known: Canonical, array: Array) -> Canonical:
    """The constant, or one met before that differs by rounding alone."""
    kept = [axis for axis, place in enumerate(known.places) if place is not None]
    array = array[tuple(slice(None) if axis in kept else 0 for axis in range(array.ndim))]
    order = [place for place in known.places if place is not None]
    found = table.near.nearest(known, array.transpose(np.argsort(order)))
    if found is not known:
        table.step("constants rounded otherwise")
    return found


def arranged(flat: Array, groups: Sequence[Dim]) -> Array:
    """The numbers with an axis for each group of pieces."""
    pieces = [piece for group in groups for piece in group]
    digits = sorted((p for p in pieces if p.base != FREE), key=_outer_first)
    split = flat.reshape([_whole(p.extent) for p in digits])
    moved = split.transpose([digits.index(p) for p in pieces if p.base != FREE])
    index = tuple(None if piece.base == FREE else slice(None) for piece in pieces)
    spread = np.broadcast_to(moved[index], [_whole(piece.extent) for piece in pieces])
    return spread.reshape([_whole(extent(group)) for group in groups])


def _whole(length: Length) -> int:
    if not isinstance(length, int):
        raise NotKnownError("a constant of open lengths")
    return length


def _outer_first(piece: Piece) -> int:
    return -_whole(piece.stride)


def _data(array: Array) -> Data | None:
    if array.dtype.kind not in "iub" or array.ndim > 1 or array.size > DATA_LIMIT:
        return None
    return Data(str(array.dtype), tuple(int(n) for n in array.reshape(-1)))


def of_data(table: TermTable, data: Data, shape: Sequence[Length]) -> TermValue:
    """The tensor of these whole numbers, which is a constant if none of them is open."""
    data = Data(data.kind, tuple(table.known(n) for n in data.elements))
    numbers = [n for n in data.elements if isinstance(n, int)]
    if len(numbers) == len(data.elements):
        return constant(table, np.array(numbers, data.kind).reshape([_whole(n) for n in shape]))
    term = table.term("lengths", data)
    return TermValue(term, tuple(table.axis(n, "of", term, i) for i, n in enumerate(shape)), data)
