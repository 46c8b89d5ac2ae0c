"""The forms in which a model may be given, each converted to one message."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol, TypeAlias, runtime_checkable

import onnx
import onnx_ir as ir
from google.protobuf.message import DecodeError, EncodeError
from onnx.serialization import registry

from relayout.errors import BadModelError, RelayoutError, quoted

BINARY = "protobuf"
LARGEST_MESSAGE = 2**31 - 1
"""No larger message can be written or read; a limit of the format."""

GIVEN_BYTES = "what was given"
"""How bytes that came without a name are called."""

LARGEST_IN_MEMORY = 1_900_000_000
"""A model with more data than this goes through files."""


@runtime_checkable
class ExportedProgram(Protocol):
    """What `torch.onnx.export` returns; reading its other members may be costly."""

    @property
    def model(self) -> ir.Model: ...


ModelSource: TypeAlias = (
    str | os.PathLike[str] | bytes | onnx.ModelProto | ir.Model | ExportedProgram
)
"""A path, the bytes of a file, or a model in one of the forms that it has in memory."""


@dataclass(frozen=True, slots=True)
class Given:
    """A message and where it came from."""

    message: onnx.ModelProto
    path: Path | None = None
    folder: Path | None = None
    """Where external data lies, if there is any."""
    data: bytes | None = None
    """What it was read from, where that was no file."""
    spill: TemporaryDirectory[str] | None = None


def given(source: ModelSource) -> Given:
    """Read a model in any of the forms; external data stays where it is."""
    if isinstance(source, onnx.ModelProto):
        return _from_message(source)
    if isinstance(source, ir.Model):
        return _from_ir(source)
    if isinstance(source, bytes):
        return Given(_from_bytes(source, GIVEN_BYTES, BINARY), data=source)
    if isinstance(source, str | os.PathLike):
        return _from_path(Path(source))
    if isinstance(source, ExportedProgram):
        return _from_ir(source.model)
    raise RelayoutError(
        f"a model is given as a path, as bytes, as an onnx.ModelProto, an onnx_ir.Model"
        f" or an exported program, not as {type(source).__name__}"
    )


def format_of(path: Path) -> str:
    """The way of writing a model that a file's suffix asks for; binary if it asks for none."""
    return registry.get_format_from_file_extension(path.suffix) or BINARY


def encoded(message: onnx.ModelProto, format_name: str) -> bytes:
    """The bytes of a model; the same for the same model in every process."""
    if format_name != BINARY:
        text: bytes = registry.get(format_name).serialize_proto(message)
        return text
    try:
        data: bytes = message.SerializeToString(deterministic=True)
    except (EncodeError, ValueError) as error:
        raise RelayoutError(f"the model cannot be written: {error}") from None
    if len(data) > LARGEST_MESSAGE:
        raise RelayoutError("the model needs 2 GiB or more in one file, which ONNX cannot hold")
    return data


def _from_message(message: onnx.ModelProto) -> Given:
    if message.ByteSize() > LARGEST_MESSAGE:
        raise BadModelError(
            "the message is larger than 2 GiB, which cannot be written or copied;"
            " save the model with external data and give its path"
        )
    return Given(message)


def _from_path(path: Path) -> Given:
    if not path.is_fifo():
        return Given(_from_file(path), path, path.parent)
    # A pipe can be read once only, so what is needed again is what was read.
    data = _read_pipe(path)
    return Given(_from_bytes(data, quoted(str(path)), format_of(path)), data=data)


def _read_pipe(path: Path) -> bytes:
    """All that is written to a pipe, unless no one does: that would be waited for."""
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        with os.fdopen(descriptor, "rb") as file:
            os.set_blocking(descriptor, True)
            data = file.read(LARGEST_MESSAGE + 1)
    except OSError as error:
        raise BadModelError(f"{quoted(str(path))} cannot be read: {error.strerror}") from None
    if not data:
        raise BadModelError(f"{quoted(str(path))} is a pipe that no one writes to")
    return data


def _from_file(path: Path) -> onnx.ModelProto:
    return _from_bytes(_read(path), quoted(str(path)), format_of(path))


def _from_bytes(data: bytes, name: str, format_name: str) -> onnx.ModelProto:
    if not data:
        raise BadModelError(f"{name} is empty")
    if len(data) > LARGEST_MESSAGE:
        raise _too_large(name)
    try:
        model: onnx.ModelProto = registry.get(format_name).deserialize_proto(
            data, onnx.ModelProto()
        )
    except (DecodeError, ValueError, onnx.parser.ParseError) as error:
        raise BadModelError(_not_a_model(name, format_name, error)) from None
    return model


def _not_a_model(name: str, format_name: str, error: Exception) -> str:
    if format_name != BINARY:
        return f"{name} is not an ONNX model in {format_name} form: {_line(error)}"
    return (
        f"{name} is not an ONNX model"
        " (damaged, cut short, nested too deep, or something else altogether)"
    )


def _read(path: Path) -> bytes:
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise BadModelError(f"{quoted(str(path))} is not a plain file")
        if status.st_size > LARGEST_MESSAGE:
            raise _too_large(quoted(str(path)))
        return path.read_bytes()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise BadModelError(f"{quoted(str(path))} cannot be read: {reason}") from None


def _too_large(name: str) -> BadModelError:
    return BadModelError(
        f"{name} is larger than 2 GiB, which no ONNX file may be;"
        " its weights belong in external data"
    )


def _from_ir(model: ir.Model) -> Given:
    tensors = [
        value.const_value
        for graph in model.graphs()
        for value in graph.initializers.values()
        if value.const_value is not None
    ]
    external = [tensor for tensor in tensors if isinstance(tensor, ir.ExternalTensor)]
    inline = sum(
        t.nbytes for t in tensors if not isinstance(t, ir.ExternalTensor | ir.StringTensor)
    )
    folders = {str(tensor.base_dir) for tensor in external}
    if inline > LARGEST_IN_MEMORY or len(folders) > 1:
        return _spilled(model)
    return Given(ir.to_proto(model), folder=Path(folders.pop()) if folders else None)


def _spilled(model: ir.Model) -> Given:
    folder = TemporaryDirectory(prefix="relayout-")
    path = Path(folder.name) / "model.onnx"
    ir.save(model, path, external_data="model.data")
    return Given(_from_file(path), folder=path.parent, spill=folder)


def _line(error: Exception) -> str:
    return quoted(" ".join(str(error).split()))
