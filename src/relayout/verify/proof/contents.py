"""Arrays by what they hold: the same number for the same bits, found by comparing them all."""

from __future__ import annotations

import mmap
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

# Elements that are looked at to find arrays that may be the same.
LOOKED_AT = 64
# Elements that are compared at a time.
BLOCK = 1 << 20
# Elements that are copied at a time, and by how many more rows of them lie apart.
TILE, PADDING = 1 << 16, 17
# Bytes of a file that are mapped at a time to copy a part of them.
MOST_MAPPED = 1 << 26


@dataclass
class Contents:
    """Vectors met so far, by type, length and a few of their elements."""

    known: dict[Hashable, list[tuple[int, Array]]] = field(default_factory=dict)
    count: int = 0

    def number_of(self, flat: Array) -> int:
        """A number that only vectors of the same bits share."""
        met = self.known.setdefault(_glance(flat), [])
        for number, other in met:
            if _same_vectors(flat, other):
                return number
        self.count += 1
        met.append((self.count, flat))
        return self.count


def _glance(flat: Array) -> Hashable:
    some = flat[:: max(1, flat.size // LOOKED_AT)]
    shown = repr(some.tolist()) if flat.dtype == object else some.tobytes()
    return str(flat.dtype), flat.size, shown


def _same_vectors(one: Array, other: Array) -> bool:
    starts = range(0, one.size, BLOCK)
    return all(same_bits(one[at : at + BLOCK], other[at : at + BLOCK]) for at in starts)


def same_bits(one: Array, other: Array) -> bool:
    return bool(np.array_equal(as_bits(one), as_bits(other)))


def as_bits(array: Array) -> Array:
    width = array.dtype.itemsize
    if width in (1, 2, 4, 8) and array.dtype != object:
        return np.ascontiguousarray(array).view(f"u{width}")
    return array


def compact(view: Array) -> Array:
    """The same numbers in one piece of memory, copied in the order in which they are stored.

    Pages of a file that were copied are given back, so that few of them count as memory at a time.
    """
    if _window(view) is None or not view.ndim or not view.size:
        return np.ascontiguousarray(view)
    result = np.empty(view.shape, view.dtype)
    order = np.argsort([-stride for stride in view.strides], kind="stable")
    source, target = view.transpose(order), result.transpose(order)
    rows = max(1, TILE * len(source) // source.size)
    passed = 0
    for start in range(0, len(source), rows):
        part = source[start : start + rows]
        # Rows that lie a power of two apart would share the same few lines of a cache.
        apart = np.empty((*part.shape[:-1], part.shape[-1] + PADDING), part.dtype)
        apart[..., :-PADDING] = part
        target[start : start + rows] = apart[..., :-PADDING]
        passed += rows * source.strides[0]
        if passed >= MOST_MAPPED:
            forget_pages(view)
            passed = 0
    forget_pages(view)
    return result


def forget_pages(array: Array) -> None:
    """Let the pages of a mapped array no longer count as memory; they are read again if needed."""
    window = _window(array)
    if window is not None and hasattr(window, "madvise"):
        window.madvise(mmap.MADV_DONTNEED)


def _window(array: Array) -> mmap.mmap | None:
    """The part of a file that an array is, if it is one."""
    base: object = array
    while isinstance(base, np.ndarray):
        base = base.base
    if isinstance(base, memoryview):
        base = base.obj
    return base if isinstance(base, mmap.mmap) else None
