"""Parts of large arrays, of which little is in memory at a time."""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

# Elements of a part.
BLOCK = 1 << 20
# Elements that are copied at a time, and by how many more rows of them lie apart.
TILE, PADDING = 1 << 16, 17
# Bytes of a file that are mapped at a time to go through a part of them.
MOST_MAPPED = 1 << 26


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
