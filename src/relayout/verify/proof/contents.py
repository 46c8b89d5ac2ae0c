"""Arrays by what they hold: the same number for the same bits, found by comparing them all."""

from __future__ import annotations

import mmap
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from relayout.verify.proof.cores import on_cores

Array = np.ndarray[Any, Any]
Make: TypeAlias = Callable[[], Array]

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
    """Arrays met so far, by type, lengths and a few of their elements."""

    known: dict[Hashable, list[tuple[int, Make]]] = field(default_factory=dict)
    count: int = 0

    def number_of(self, array: Array, make: Make | None = None) -> int:
        """A number that only arrays of the same lengths and bits share.

        An array that can be made again need not be kept.
        """
        met = self.known.setdefault(_glance(array), [])
        for number, other in met:
            if _same(array, other()):
                return number
        self.count += 1
        met.append((self.count, make or (lambda: array)))
        return self.count


def _glance(array: Array) -> Hashable:
    some = array
    if array.size > LOOKED_AT:
        places = np.arange(0, array.size, array.size // LOOKED_AT)
        some = array[np.unravel_index(places, array.shape)]
    shown = repr(some.tolist()) if array.dtype == object else some.tobytes()
    return str(array.dtype), array.shape, shown


def _same(one: Array, other: Array) -> bool:
    pairs = zip(blocks(one), blocks(other), strict=True)
    return all(on_cores(lambda pair: same_bits(compact(pair[0]), compact(pair[1])), pairs))


def blocks(array: Array) -> Iterator[Array]:
    """Parts of the array in order, so that no copy of the whole is made."""
    if array.ndim == 0 or array.size <= BLOCK:
        yield array
        return
    for part in row_parts(array):
        block = array[part]
        yield from (blocks(block[0]) if len(block) == 1 and array.ndim > 1 else [block])


def row_parts(array: Array) -> list[slice]:
    """The places along the first axis, in parts of at most a block unless a single one has more."""
    length = len(array)
    rows = max(1, BLOCK * length // max(1, array.size))
    return [slice(start, min(start + rows, length)) for start in range(0, length, rows)]


def same_bits(one: Array, other: Array) -> bool:
    if one.dtype != object and one.dtype.itemsize > 8:
        return one.tobytes() == other.tobytes()
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
