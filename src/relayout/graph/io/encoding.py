"""The bytes of a model in parts, so that its constants are not in memory once more.

A message is its fields one after the other, in the order of their numbers: what comes before the
constants, each constant, and what comes after them are encoded by themselves.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

import onnx
from google.protobuf.message import EncodeError, Message

from relayout.errors import RelayoutError
from relayout.graph.io.sources import BINARY, LARGEST_MESSAGE, encoded
from relayout.graph.messages.skeleton import copy_fields, has_unknown

_Holder = TypeVar("_Holder", onnx.ModelProto, onnx.GraphProto)

_OF_MESSAGES = 2
"""The last bits of the mark in front of a message."""


def encoded_parts(
    message: onnx.ModelProto, format_name: str, constants: Sequence[onnx.TensorProto] = ()
) -> Iterator[bytes]:
    """The bytes of a model, one part after the other, as `encoded` gives them at once.

    `constants` follow those of the message.
    """
    every = [*message.graph.initializer, *constants]
    if format_name != BINARY or not every or has_unknown(message):
        yield encoded(_with_constants(message, constants), format_name)
        return
    try:
        yield from _parts(message, every)
    except (EncodeError, ValueError) as error:
        raise RelayoutError(f"the model cannot be written: {error}") from None


def _with_constants(
    message: onnx.ModelProto, constants: Sequence[onnx.TensorProto]
) -> onnx.ModelProto:
    if not constants:
        return message
    result = onnx.ModelProto()
    result.CopyFrom(message)
    result.graph.initializer.extend(constants)
    return result


def _parts(message: onnx.ModelProto, constants: Sequence[onnx.TensorProto]) -> Iterator[bytes]:
    before, after = _around(message, "graph")
    head, tail = _around(message.graph, "initializer")
    sizes = [tensor.ByteSize() for tensor in constants]
    marks = [_mark(message.graph, "initializer", size) for size in sizes]
    size = len(head) + sum(sizes) + sum(map(len, marks)) + len(tail)
    mark = _mark(message, "graph", size)
    if len(before) + len(mark) + size + len(after) > LARGEST_MESSAGE:
        raise RelayoutError("the model needs 2 GiB or more in one file, which ONNX cannot hold")
    yield before + mark + head
    for each, tensor in zip(marks, constants, strict=True):
        yield each
        yield tensor.SerializeToString(deterministic=True)
    yield tail + after


def _around(message: _Holder, name: str) -> tuple[bytes, bytes]:
    """The fields before the one of this name, and those after it."""
    fields = message.DESCRIPTOR.fields
    middle = message.DESCRIPTOR.fields_by_name[name].number
    before, after = type(message)(), type(message)()
    copy_fields(message, before, {field.name for field in fields if field.number >= middle})
    copy_fields(message, after, {field.name for field in fields if field.number <= middle})
    return before.SerializeToString(deterministic=True), after.SerializeToString(deterministic=True)


def _mark(message: Message, name: str, size: int) -> bytes:
    """What stands in front of a message that is a field of another: its number and its size."""
    number = message.DESCRIPTOR.fields_by_name[name].number
    return _varint(number << 3 | _OF_MESSAGES) + _varint(size)


def _varint(number: int) -> bytes:
    """Seven bits a byte, the lowest first; all bytes but the last have the highest bit set."""
    encoded_bytes = bytearray()
    while number > 0x7F:
        encoded_bytes.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes((*encoded_bytes, number))
