"""The bytes of a constant in blocks, so that one larger than memory can be written.

What is read of a file is mapped a window at a time: its pages no longer count as memory of this
process once nothing refers to them.
"""

from __future__ import annotations

import math
import mmap
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from relayout.graph.editing.contiguous import contiguous, copy_into
from relayout.graph.editing.permuted import PermutedTensor
from relayout.layout.permutation import Permutation

Array = npt.NDArray[Any]

BLOCK = 64 * 1024 * 1024
"""Bytes that are read or written at a time, at most, unless a single row has more."""


def blocks_of(tensor: ir.TensorProtocol) -> Iterator[bytes | memoryview]:
    """The bytes of a constant, in order."""
    if _is_streamed(tensor):
        return (block.reshape(-1).view(np.uint8).data for block in _blocks(tensor))
    return iter([tensor.tobytes()])


def read_ahead(tensor: ir.TensorProtocol) -> None:
    """Let the disk read a constant, or the first block of it, while others are written."""
    if not _is_streamed(tensor) or not hasattr(os, "posix_fadvise"):
        return
    given = tensor.given
    assert isinstance(given, ir.ExternalTensor)
    with Path(given.path).open("rb") as file:
        length = min(tensor.nbytes, BLOCK)
        os.posix_fadvise(file.fileno(), given.offset or 0, length, os.POSIX_FADV_WILLNEED)


def _is_streamed(tensor: ir.TensorProtocol) -> TypeGuard[PermutedTensor]:
    """Whether a constant is read from its file in blocks."""
    if not isinstance(tensor, PermutedTensor) or not isinstance(tensor.given, ir.ExternalTensor):
        return False
    return tensor.dtype.bitwidth % 8 == 0 and bool(tensor.size)


@dataclass(frozen=True, slots=True)
class _FileRows:
    """An array in a file, by rows: what lies at one place of its first axis."""

    tensor: ir.ExternalTensor
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def row_bytes(self) -> int:
        return math.prod(self.shape[1:]) * self.dtype.itemsize

    @property
    def rows_of_a_block(self) -> int:
        return max(1, BLOCK // self.row_bytes)

    def rows(self, part: slice) -> Array:
        """Some rows, mapped as long as something refers to them."""
        begin = (self.tensor.offset or 0) + part.start * self.row_bytes
        spare = begin % mmap.ALLOCATIONGRANULARITY
        count = (part.stop - part.start) * math.prod(self.shape[1:])
        length = spare + count * self.dtype.itemsize
        with Path(self.tensor.path).open("rb") as file:
            window = mmap.mmap(file.fileno(), length, access=mmap.ACCESS_READ, offset=begin - spare)
        if hasattr(window, "madvise"):
            # Tiles take rows apart; the disk had better read them one after the other.
            window.madvise(mmap.MADV_WILLNEED)
        flat = np.frombuffer(window, self.dtype, count, spare)
        return flat.reshape((part.stop - part.start, *self.shape[1:]))


def _blocks(tensor: PermutedTensor) -> Iterator[Array]:
    """The array in the order of the tensor, by parts along its first axis."""
    given, order = _without_unit_axes(tensor)
    shape = order.reorder(given.shape)
    row_bytes = math.prod(shape[1:]) * given.dtype.itemsize
    for part in _parts(shape[0], max(1, BLOCK // row_bytes)):
        if order[0] == 0:
            yield contiguous(given.rows(part).transpose(order.axes))
        else:
            yield _gathered(given, order, part)


def _gathered(given: _FileRows, order: Permutation, part: slice) -> Array:
    """A part along the first axis of the result, to which every row of the file adds something."""
    lengths = list(order.reorder(given.shape))
    lengths[0] = part.stop - part.start
    block = np.empty(lengths, given.dtype)
    axis = order.position(0)
    for rows in _parts(given.shape[0], given.rows_of_a_block):
        at = (slice(None),) * axis + (rows,)
        copy_into(block[at], given.rows(rows).transpose(order.axes)[part])
    return block


def _without_unit_axes(tensor: PermutedTensor) -> tuple[_FileRows, Permutation]:
    """The array in the file and its order, without axes that have one place."""
    given = tensor.given
    assert isinstance(given, ir.ExternalTensor)
    lengths = given.shape.numpy()
    kept = [axis for axis, length in enumerate(lengths) if length != 1] or [0]
    order = Permutation(tuple(kept.index(axis) for axis in tensor.order if axis in kept))
    dtype = given.dtype.numpy().newbyteorder("<")
    return _FileRows(given, tuple(lengths[axis] for axis in kept), dtype), order


def _parts(length: int, step: int) -> Iterator[slice]:
    for start in range(0, length, step):
        yield slice(start, min(start + step, length))
