"""Constants, by content: the same numbers under another order of axes are the same term."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby, permutations
from typing import Any

import numpy as np

from relayout.verify.proof.canonical import Canonical
from relayout.verify.proof.contents import Contents, as_bits, compact, forget_pages
from relayout.verify.proof.lengths import Length
from relayout.verify.proof.pieces import FREE, Dim, Piece, extent, free
from relayout.verify.proof.table import Data, NotKnownError, TermTable, TermValue

Array = np.ndarray[Any, Any]

# Elements that are hashed at a time.
BLOCK = 1 << 20
# Orders of axes that no signature tells apart and that are all tried.
TRIED_ORDERS = 24
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
    flat = np.ascontiguousarray(array).reshape(-1)
    alike = flat.size > 1 and _uniform(flat, 0)
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
        array = arranged(table.arrays[term], groups)
        known = table.canonical[key] = canonical(array)
    if table.ledger is not None:
        known = _rounded(table, known, arranged(table.arrays[term], groups))
    forget_pages(table.arrays[term])
    term = table.term("constant", known.dtype, known.shape, known.digest)
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


def canonical(array: Array) -> Canonical:
    """An array whatever the order of its axes; along some it may not change."""
    kept = [axis for axis in range(array.ndim) if not _uniform(array, axis)]
    places: list[int | None] = [None] * array.ndim
    array = array[tuple(slice(None) if axis in kept else 0 for axis in range(array.ndim))]
    order = _canonical_order(array)
    for place, axis in enumerate(order):
        places[kept[axis]] = place
    array = array.transpose(order)
    return Canonical(str(array.dtype), array.shape, _digest(array), tuple(places))


def _uniform(array: Array, axis: int) -> bool:
    """Whether the numbers do not change along an axis."""
    if array.shape[axis] == 0 or array.dtype == object:
        return False
    array = np.moveaxis(array, axis, 0)
    first, step = as_bits(array[:1]), max(1, BLOCK * len(array) // array.size)
    if not np.array_equal(first, as_bits(array[-1:])):
        return False
    parts = (array[start : start + step] for start in range(1, len(array) - 1, step))
    return all(bool(np.all(as_bits(part) == first)) for part in parts)


def _canonical_order(array: Array) -> tuple[int, ...]:
    """An order of axes that does not depend on the order in which they are given."""
    lengths = array.shape
    ties = {n for n in lengths if lengths.count(n) > 1}
    signatures = _signatures(array, [axis for axis, n in enumerate(lengths) if n in ties])
    keys = {axis: (n, signatures.get(axis, b"")) for axis, n in enumerate(lengths)}
    ranked = sorted(range(array.ndim), key=keys.__getitem__)
    groups = [list(group) for _, group in groupby(ranked, key=keys.__getitem__)]
    orders: list[tuple[int, ...]] = [()]
    for group in groups:
        orders = [(*order, *part) for order in orders for part in permutations(group)]
        if len(orders) > TRIED_ORDERS:
            return tuple(ranked)
    return (
        min(orders, key=lambda order: _digest(array.transpose(order))) if orders[1:] else orders[0]
    )


def _signatures(array: Array, axes: Iterable[int]) -> dict[int, bytes]:
    """By axis, a digest of what lies at each place along it, whatever the order of the others."""
    axes = list(axes)
    if not axes or array.dtype == object:
        return dict.fromkeys(axes, b"")
    sums = {axis: np.zeros(array.shape[axis], np.uint64) for axis in axes}
    rows = max(1, BLOCK * array.shape[0] // array.size)
    for start in range(0, array.shape[0], rows):
        bits = as_bits(compact(array[start : start + rows]))
        for axis in axes:
            others = tuple(i for i in range(array.ndim) if i != axis)
            part = bits.sum(axis=others, dtype=np.uint64)
            if axis == 0:
                sums[0][start : start + rows] = part
            else:
                sums[axis] += part
    return {axis: hashlib.sha256(one.tobytes()).digest() for axis, one in sums.items()}


def _digest(array: Array) -> bytes:
    hashed = hashlib.sha256()
    if array.dtype == object:
        hashed.update(repr(array.tolist()).encode())
        return hashed.digest()
    for block in _blocks(array):
        hashed.update(compact(block).reshape(-1).view(np.uint8).data)
    return hashed.digest()


def _blocks(array: Array) -> Iterable[Array]:
    """Parts of the array in order, so that no copy of the whole is made."""
    if array.ndim == 0 or array.size <= BLOCK:
        yield array
        return
    rows = max(1, BLOCK * array.shape[0] // array.size)
    for start in range(0, array.shape[0], rows):
        block = array[start : start + rows]
        yield from (_blocks(block[0]) if rows == 1 else [block])


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
