"""Constants that lie in files: mapped rather than read, and told apart by where they lie.

Two tensors of one type and shape that are the same bytes of the same file are the same numbers,
which nobody has to read. Nor has anybody to read what a file has no blocks for: it is zeros.
"""

from __future__ import annotations

import errno
import math
import os
from collections import Counter
from collections.abc import Container, Iterator
from dataclasses import dataclass, field
from mmap import ACCESS_READ, ALLOCATIONGRANULARITY, mmap
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import onnx
from onnx import helper, numpy_helper
from onnx.external_data_helper import load_external_data_for_tensor, uses_external_data

from relayout.verify.proof.parts import Array

# Tensors of fewer bytes are read, and compared by what they hold.
SMALLEST_SHARED = 1 << 20


class StoredPlace(NamedTuple):
    """Bytes of a file, and what they are read as."""

    device: int
    file: int
    offset: int
    dtype: int
    dims: tuple[int, ...]


class DataPlace(NamedTuple):
    """A file that holds data, and what only it has."""

    path: Path
    device: int
    file: int


@dataclass(frozen=True)
class DataFolder:
    """Where the data of a model lies."""

    folder: Path
    roots: tuple[Path, ...]
    """Real folders that data may lie in: the model's, and that of the file a link leads to."""
    _files: dict[str, DataPlace] = field(default_factory=dict, compare=False)
    """By location, since many tensors lie in one file."""

    @classmethod
    def of(cls, model: Path) -> DataFolder:
        return cls(model.parent, (model.parent.resolve(), model.resolve().parent))

    @classmethod
    def at(cls, folder: Path) -> DataFolder:
        return cls(folder, (folder.resolve(),))

    def array(self, tensor: onnx.TensorProto) -> Array:
        """What a tensor holds; the numbers of a large one stay in its file until they are read."""
        if not uses_external_data(tensor):
            return numpy_helper.to_array(tensor)
        dtype = helper.tensor_dtype_to_np_dtype(tensor.data_type)
        if not dtype.hasobject and self._is_hole(tensor):
            return np.broadcast_to(np.zeros((), dtype), tuple(tensor.dims))
        if not _is_mappable(dtype) or not _bytes(tensor):
            loaded = onnx.TensorProto()
            loaded.CopyFrom(tensor)
            load_external_data_for_tensor(loaded, str(self.folder))
            return numpy_helper.to_array(loaded)
        return self._mapped(tensor, dtype)

    def place(self, tensor: onnx.TensorProto) -> StoredPlace:
        entries = _entries(tensor)
        _, device, file = self._file(entries["location"])
        offset = int(entries.get("offset", 0))
        return StoredPlace(device, file, offset, tensor.data_type, tuple(tensor.dims))

    def _is_hole(self, tensor: onnx.TensorProto) -> bool:
        """Whether a large tensor lies where its file holds nothing, which is read as zeros."""
        length = _bytes(tensor)
        if length < SMALLEST_SHARED or not hasattr(os, "SEEK_DATA"):
            return False
        entries = _entries(tensor)
        begin = int(entries.get("offset", 0))
        with self._file(entries["location"]).path.open("rb") as file:
            is_whole = os.fstat(file.fileno()).st_size >= begin + length
            return is_whole and _next_data(file, begin) >= begin + length

    def _mapped(self, tensor: onnx.TensorProto, dtype: np.dtype[Any]) -> Array:
        entries = _entries(tensor)
        offset, count = int(entries.get("offset", 0)), math.prod(tensor.dims)
        spare = offset % ALLOCATIONGRANULARITY
        length = spare + count * dtype.itemsize
        with self._file(entries["location"]).path.open("rb") as file:
            window = mmap(file.fileno(), length, access=ACCESS_READ, offset=offset - spare)
        return np.frombuffer(window, dtype, count, spare).reshape(tuple(tensor.dims))

    def _file(self, location: str) -> DataPlace:
        if location not in self._files:
            path = (self.folder / location).resolve(strict=True)
            if not any(path.is_relative_to(root) for root in self.roots):
                raise ValueError(f"data in {location!r}, which leads out of the model's folder")
            status = path.stat()
            self._files[location] = DataPlace(path, status.st_dev, status.st_ino)
        return self._files[location]


def shared_places(
    before: tuple[onnx.ModelProto, DataFolder], after: tuple[onnx.ModelProto, DataFolder]
) -> frozenset[StoredPlace]:
    """The places of large constants that both models have, and read equally often.

    A constant that is read less often in one of them may stand there in another order too, which
    only its numbers show.
    """
    first, second = places_of(*before), places_of(*after)
    return frozenset(place for place, count in first.items() if count == second.get(place))


def places_of(
    model: onnx.ModelProto, data: DataFolder, without: Container[str] = ()
) -> dict[StoredPlace, int]:
    """The places of large constants but for some, and how often what lies there is read."""
    reads = Counter(_names(model.graph))
    kept = (t for t in model.graph.initializer if t.name not in without)
    large = (t for t in kept if uses_external_data(t))
    found = Counter[StoredPlace]()
    for tensor in large:
        if _bytes(tensor) >= SMALLEST_SHARED:
            found[data.place(tensor)] += reads[tensor.name]
    return found


def _names(graph: onnx.GraphProto) -> Iterator[str]:
    """Every use of a name in a graph or in a body."""
    yield from (output.name for output in graph.output)
    for node in graph.node:
        yield from node.input
        for attribute in node.attribute:
            for body in (attribute.g, *attribute.graphs):
                yield from _names(body)


def _next_data(file: BinaryIO, begin: int) -> float:
    """Where a file holds something from some place on, as far as the system knows."""
    try:
        return os.lseek(file.fileno(), begin, os.SEEK_DATA)
    except OSError as error:
        return math.inf if error.errno == errno.ENXIO else begin


def _bytes(tensor: onnx.TensorProto) -> int:
    """What a tensor takes in memory, where entries of less than a byte take a whole one."""
    dtype = helper.tensor_dtype_to_np_dtype(tensor.data_type)
    return int(dtype.itemsize * math.prod(tensor.dims))


def _is_mappable(dtype: np.dtype[Any]) -> bool:
    """Whether entries lie in files as they do in memory; types of one byte may be packed there."""
    return not dtype.hasobject and (dtype.isbuiltin == 1 or dtype.itemsize > 1)


def _entries(tensor: onnx.TensorProto) -> dict[str, str]:
    return {entry.key: entry.value for entry in tensor.external_data}
