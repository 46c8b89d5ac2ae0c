"""Tensors whose data lies in other files: what a model may name, and what is refused unopened."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath, PureWindowsPath

import onnx
import onnx_ir as ir

from relayout.errors import BadModelError, quoted
from relayout.graph.io.tensors import bytes_needed, data_type_of, label


@dataclass(frozen=True, slots=True)
class ExternalFile:
    """A file that a model may read, found to be a plain file in a folder of the model."""

    path: Path
    """The real path: no part of it is a link."""
    size: int
    links: int


@dataclass(slots=True)
class ExternalFiles:
    """The files that a model names, each examined once."""

    folder: Path | None
    """Where relative locations start; None when the model came without a path."""
    roots: tuple[Path, ...] = ()
    """Real folders in which a file must lie once every link is followed."""
    allow_hard_links: bool = False
    found: dict[str, ExternalFile] = field(default_factory=dict)
    """What each location of the model leads to."""

    @classmethod
    def beside(cls, path: Path, *, allow_hard_links: bool) -> ExternalFiles:
        """The files of a model at `path`: beside it, or beside the file that its link leads to."""
        roots = (path.parent.resolve(), path.resolve().parent)
        return cls(path.parent.absolute(), roots, allow_hard_links)

    def check(self, tensor: onnx.TensorProto, place: str) -> None:
        """Refuse a tensor whose data may not be read or is not all there."""
        name = label(tensor, place)
        entries = _entries(tensor, name)
        file = self._file(entries["location"], name)
        if data_type_of(tensor, place) == ir.DataType.STRING:
            raise BadModelError(f"{name} keeps strings in an external file, which is not allowed")
        needed = bytes_needed(tensor, place)
        offset = _number(entries, "offset", name) or 0
        length = _number(entries, "length", name)
        if length is not None and length != needed:
            raise BadModelError(
                f"{name} gives the length {length}, but its dims"
                f" {list(tensor.dims)} ask for {needed} bytes"
            )
        if offset + needed > file.size:
            raise BadModelError(
                f"{name} asks for bytes {offset} to {offset + needed} of"
                f" {quoted(entries['location'])}, which has {file.size}"
            )

    def tensor(self, message: onnx.TensorProto) -> ir.ExternalTensor:
        """A checked tensor, mapped when it is first read, whatever the working folder is then."""
        entries = _entries(message, message.name)
        file = self.found[entries["location"]]
        # onnx-ir looks for links again when it opens the file, unless it is given no folder.
        guarded = file.links == 1
        return ir.ExternalTensor(
            str(file.path),
            offset=int(entries.get("offset", 0)),
            length=bytes_needed(message, "external"),
            dtype=ir.DataType(message.data_type),
            shape=ir.Shape(message.dims),
            name=message.name,
            doc_string=message.doc_string or None,
            base_dir=str(file.path.parent) if guarded else "",
        )

    def _file(self, location: str, name: str) -> ExternalFile:
        if location not in self.found:
            self.found[location] = self._examined(location, name)
        return self.found[location]

    def _examined(self, location: str, name: str) -> ExternalFile:
        if self.folder is None:
            raise BadModelError(
                f"{name} keeps its data in the file {quoted(location)}, but the model was given"
                " without its folder; give the path of the model file instead"
            )
        shown = f"{name} keeps its data in {quoted(location)}"
        if not stays_inside(location):
            raise BadModelError(f"{shown}, which leads out of the model's folder")
        try:
            real = (self.folder / location).resolve(strict=True)
            if not any(real.is_relative_to(root) for root in self.roots):
                raise BadModelError(f"{shown}, a link that leads out of the model's folder")
            status = _status(real)
        except (OSError, RuntimeError) as error:
            reason = getattr(error, "strerror", None) or error
            raise BadModelError(f"{shown}, which cannot be read: {reason}") from None
        if not stat.S_ISREG(status.st_mode):
            raise BadModelError(f"{shown}, which is not a plain file")
        if status.st_nlink > 1 and not self.allow_hard_links:
            raise BadModelError(
                f"{shown}, which has {status.st_nlink} hard links;"
                " copy the file, or allow hard links, if you trust the model"
            )
        return ExternalFile(real, status.st_size, status.st_nlink)


def stays_inside(location: str) -> bool:
    """Whether a location is a relative path that never climbs out of where it starts."""
    windows = PureWindowsPath(location)
    if not location or "\0" in location or windows.drive or windows.root:
        return False
    depth = 0
    for part in PurePosixPath(location.replace("\\", "/")).parts:
        depth += -1 if part == ".." else 1
        if depth < 0:
            return False
    return depth > 0


def location_of(tensor: onnx.TensorProto) -> str:
    return _entries(tensor, tensor.name)["location"]


def _status(real: Path) -> os.stat_result:
    """What kind of file a path leads to; opening must not wait for the other end of a pipe."""
    status = os.lstat(real)
    if not stat.S_ISREG(status.st_mode):
        return status
    descriptor = os.open(real, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    try:
        return os.fstat(descriptor)
    finally:
        os.close(descriptor)


def _entries(tensor: onnx.TensorProto, name: str) -> dict[str, str]:
    entries = {entry.key: entry.value for entry in tensor.external_data}
    if len(entries) != len(tensor.external_data):
        raise BadModelError(f"{name} describes its external data twice")
    if not isinstance(entries.get("location"), str):
        raise BadModelError(f"{name} is external but names no file")
    return entries


def _number(entries: dict[str, str], key: str, name: str) -> int | None:
    text = entries.get(key)
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= 20):
        raise BadModelError(f"{name} gives the {key} {quoted(text)}, which is not a size")
    return int(text)
