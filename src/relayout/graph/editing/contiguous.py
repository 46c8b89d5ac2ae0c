"""Large arrays copied into the order of their axes, in tiles that caches hold, on all cores."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise, product
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

SMALLEST = 1 << 20
"""Arrays of fewer bytes are copied at once."""

TILE = 256
"""Entries of a tile along each of its two axes."""

NARROW = 32
"""Runs of fewer entries in the source are not worth a tile of their own."""

NEAR = 1 << 18
"""Bytes that caches hold: entries that lie in so many are read in any order."""

# Rows of a tile that lie a power of two apart would share the same few lines of a cache.
_PADDING = 17


def contiguous(view: Array) -> Array:
    """The same entries, stored in the order of the axes."""
    result = np.empty(view.shape, view.dtype)
    copy_into(result, view)
    return result


def copy_into(result: Array, view: Array) -> None:
    """As `result[...] = view`, for a result that is stored in the order of its axes."""
    if view.nbytes < SMALLEST:
        result[...] = view
        return
    # Along the longest axis, since cores share the work.
    axis = int(np.argmax(view.shape))
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
    bounds = [view.shape[axis] * part // count for part in range(count + 1)]
    parts = [(slice(None),) * axis + (slice(*pair),) for pair in pairwise(bounds)]
    with ThreadPoolExecutor(count) as pool:
        list(pool.map(lambda at: _copy_part(result[at], view[at]), parts))


def _copy_part(result: Array, view: Array) -> None:
    strides = [
        abs(s) if n > 1 else view.nbytes for s, n in zip(view.strides, view.shape, strict=True)
    ]
    run, last = int(np.argmin(strides)), view.ndim - 1
    is_near = strides[last] * view.shape[last] <= NEAR and view.shape[run] < NARROW
    if run == last or is_near or not view.size:
        result[...] = view
    elif view.shape[run] < NARROW:
        for start in range(0, view.shape[last], NARROW):
            result[..., start : start + NARROW] = view[..., start : start + NARROW]
    else:
        others = [axis for axis in range(view.ndim) if axis not in {run, last}]
        order = (*others, last, run)
        _copy_tiles(result.transpose(order), view.transpose(order))


def _copy_tiles(result: Array, view: Array) -> None:
    """Copy matrices whose rows are runs of the source and whose columns are runs of the result."""
    buffer = np.empty((TILE, TILE + _PADDING), view.dtype)
    for outer in np.ndindex(*view.shape[:-2]):
        for at in _tiles(*view.shape[-2:]):
            source = view[outer][at]
            tile = buffer[: source.shape[0], : source.shape[1]]
            tile[...] = source
            result[outer][at] = tile


def _tiles(rows: int, columns: int) -> Iterator[tuple[slice, slice]]:
    for row, column in product(range(0, rows, TILE), range(0, columns, TILE)):
        yield slice(row, row + TILE), slice(column, column + TILE)
