"""Whether two arrays hold the same bits, in whatever order of their axes each of them is stored."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np

from relayout.verify.proof.cores import on_cores
from relayout.verify.proof.parts import (
    MOST_MAPPED,
    PADDING,
    Array,
    blocks,
    compact,
    forget_pages,
)

# Bytes of the widest whole numbers.
WIDEST = 8
# Blocks that are compared before their pages are given back.
AT_ONCE = 16
# Entries of a tile along each of its two axes.
SIDE = 256
# Tiles with fewer entries along one of them cost more than a copy.
NARROW = 32


def same_bits(one: Array, other: Array) -> bool:
    """Whether arrays of one type and shape hold the same; some cores share the work."""
    pairs = list(zip(blocks(one), blocks(other), strict=True))
    for start in range(0, len(pairs), AT_ONCE):
        if not all(on_cores(lambda pair: _same_part(*pair), pairs[start : start + AT_ONCE])):
            return False
        _forget(one, other)
    return True


def _forget(one: Array, other: Array) -> None:
    forget_pages(one)
    forget_pages(other)


def as_bits(array: Array) -> Array:
    """The same entries as whole numbers, where they are of a width that these have."""
    width = array.dtype.itemsize
    if width in (1, 2, 4, 8) and array.dtype != object:
        return array.view(f"u{width}")
    return array


def _same_part(one: Array, other: Array) -> bool:
    if one.dtype == object:
        return np.array_equal(one, other)
    if one.dtype.itemsize > WIDEST:
        return one.tobytes() == other.tobytes()
    one, other = as_bits(one), as_bits(other)
    runs = _run(one), _run(other)
    if _order(one) == _order(other):
        return np.array_equal(one, other)
    if runs[0] == runs[1] or min(one.shape[run] for run in runs) < NARROW:
        return np.array_equal(compact(one), compact(other))
    order = (*(axis for axis in range(one.ndim) if axis not in runs), *runs[::-1])
    return _same_tiles(one.transpose(order), other.transpose(order))


def _order(array: Array) -> list[int]:
    """The axes that have more than one place, in the order in which they are stored."""
    kept = [axis for axis, length in enumerate(array.shape) if length > 1]
    return sorted(kept, key=lambda axis: -abs(array.strides[axis]))


def _run(array: Array) -> int:
    """The axis along which entries lie beside each other."""
    return (_order(array) or [0])[-1]


def _same_tiles(one: Array, other: Array) -> bool:
    """As equality, for arrays that are stored along the last axis and along the one before it."""
    apart = np.empty((SIDE, SIDE + PADDING), one.dtype)
    equal = np.empty((SIDE, SIDE), bool)
    passed = 0
    for at in _tiles(one.shape):
        # Rows that lie a power of two apart would share the same few lines of a cache.
        source, target = one[at], other[at].T
        rows, columns = source.shape
        apart[:rows, :columns] = source
        found = np.equal(target, apart[:rows, :columns].T, out=equal[:columns, :rows])
        if not found.all():
            return False
        passed += max(rows * one.strides[-2], columns * other.strides[-1])
        if passed > MOST_MAPPED:
            _forget(one, other)
            passed = 0
    return True


def _tiles(shape: tuple[int, ...]) -> Iterator[tuple[int | slice, ...]]:
    """Places of tiles along the last two axes, at each place of the others."""
    *rest, rows, columns = shape
    starts = range(0, rows, SIDE), range(0, columns, SIDE)
    for outer in np.ndindex(*rest):
        for row, column in product(*starts):
            yield (*outer, slice(row, row + SIDE), slice(column, column + SIDE))
