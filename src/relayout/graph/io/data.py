"""The files that hold the new data of a saved model: written, but never overwritten."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from secrets import token_hex
from typing import BinaryIO

import onnx
import onnx_ir as ir

from relayout.errors import RelayoutError, quoted
from relayout.graph.io.background import BlockWriter
from relayout.graph.io.external import ExternalFiles
from relayout.graph.io.merge import Inline
from relayout.graph.io.streaming import blocks_of, read_ahead
from relayout.graph.messages.walk import tensors_of

SMALLEST = 1024
"""Tensors of fewer bytes stay in the model file."""

ALIGNMENT = 64
"""Data starts at multiples of this, so that it can be used where it is mapped."""


@dataclass(slots=True)
class NewFiles:
    """The files and folders made for one model, so that they can be taken back."""

    made: list[Path] = field(default_factory=list)
    on_their_way: list[Future[None]] = field(default_factory=list)
    """For files that are whole, what is done once they are on the disk."""

    def create(self, path: Path) -> BinaryIO:
        """A new file; fails if there is anything at `path`, even a link."""
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        try:
            file = os.fdopen(os.open(path, flags, 0o666), "w+b")
        except OSError as error:
            raise RelayoutError(f"{quoted(str(path))} cannot be made: {error.strerror}") from None
        self.made.append(path)
        return file

    def make_folders(self, folder: Path) -> None:
        missing = [path for path in (folder, *folder.parents) if not path.exists()]
        for path in reversed(missing):
            path.mkdir()
            self.made.append(path)

    def part_of(self, path: Path) -> Path:
        """A name beside a file's, for as long as the file is not whole."""
        return path.with_name(f".{path.name}.{token_hex(6)}.part")

    def rename(self, part: Path, path: Path) -> None:
        """Give a new file that is whole its name, which no other file has."""
        if os.path.lexists(path):
            raise RelayoutError(f"{quoted(str(path))} cannot be made: there is another file now")
        part.rename(path)
        self.made[self.made.index(part)] = path

    def reach_disk(self) -> None:
        """Wait until all files are on the disk."""
        for file in self.on_their_way:
            file.result()

    def keep(self) -> None:
        self.made.clear()

    def take_back(self) -> None:
        wait(self.on_their_way)
        for path in reversed(self.made):
            if path.is_dir():
                path.rmdir()
            else:
                path.unlink(missing_ok=True)
        self.keep()


@dataclass(slots=True)
class DataFile:
    """Writes the data of initialisers to one new file beside the model."""

    folder: Path
    location: str
    files: NewFiles
    _part: Path | None = None
    _file: BlockWriter | None = None
    _next: dict[int, ir.TensorProtocol] = field(default_factory=dict)
    """What is written after a tensor, by its id."""

    def expect(self, tensors: Sequence[ir.TensorProtocol]) -> None:
        self._next = {id(one): other for one, other in pairwise(tensors)}
        for first in tensors[:1]:
            read_ahead(first)

    def write(self, tensor: ir.TensorProtocol, name: str) -> onnx.TensorProto:
        if id(tensor) in self._next:
            read_ahead(self._next[id(tensor)])
        if tensor.dtype == ir.DataType.STRING or tensor.nbytes < SMALLEST:
            return Inline().write(tensor, name)
        file = self._opened()
        file.align(ALIGNMENT)
        offset = file.position
        for block in blocks_of(tensor):
            file.write(block)
        message = onnx.TensorProto(
            name=name,
            data_type=int(tensor.dtype),
            dims=tensor.shape.numpy(),
            data_location=onnx.TensorProto.EXTERNAL,
        )
        entries = {"location": self.location, "offset": offset, "length": file.position - offset}
        for key, value in entries.items():
            message.external_data.add(key=key, value=str(value))
        return message

    def end(self) -> None:
        """Wait until all is written; it may still be on its way to the disk."""
        if self._file is not None:
            self.files.on_their_way.append(self._file.end())

    def name(self) -> None:
        """Give the file its name, now that it is whole."""
        if self._part is not None:
            self.files.rename(self._part, self.folder / self.location)

    def _opened(self) -> BlockWriter:
        if self._file is None:
            self._part = self.files.part_of(self.folder / self.location)
            self._file = BlockWriter(self.files.create(self._part))
        return self._file


def synchronise(file: BinaryIO) -> None:
    """Wait until the data of a file is on the disk."""
    file.flush()
    os.fsync(file.fileno())


def free_location(target: Path, taken: ExternalFiles) -> str:
    """A name for new data beside `target` that no file has and the model does not refer to."""
    name, count = f"{target.name}.data", 0
    while name in taken.found or os.path.lexists(target.parent / name):
        count += 1
        name = f"{target.name}.{count}.data"
    return name


def relocate(message: onnx.ModelProto, names: dict[str, str]) -> onnx.ModelProto:
    """A copy of a model that looks for its data files under other names."""
    result = onnx.ModelProto()
    result.CopyFrom(message)
    for tensor, _ in tensors_of(result):
        for entry in tensor.external_data:
            if entry.key == "location":
                entry.value = names.get(entry.value, entry.value)
    return result
