"""What a tensor message promises, checked before anything relies on it."""

from __future__ import annotations

import math

import onnx
import onnx_ir as ir

from relayout.errors import BadModelError, quoted

MOST_AXES = 64
"""Arrays of numpy have no more."""

LARGEST = 2**40
"""No tensor may claim more bytes than this."""

_ELEMENTS_PER_ENTRY = {2: 4, 4: 2}
"""How many elements of so many bits share an entry of `int32_data`."""

_ENTRIES_PER_ELEMENT = {ir.DataType.COMPLEX64: 2, ir.DataType.COMPLEX128: 2}

_WIDE_FIELDS = {
    ir.DataType.FLOAT: "float_data",
    ir.DataType.COMPLEX64: "float_data",
    ir.DataType.DOUBLE: "double_data",
    ir.DataType.COMPLEX128: "double_data",
    ir.DataType.INT64: "int64_data",
    ir.DataType.UINT32: "uint64_data",
    ir.DataType.UINT64: "uint64_data",
    ir.DataType.STRING: "string_data",
}


def label(tensor: onnx.TensorProto, place: str) -> str:
    """How a tensor is named in a message to the user."""
    return f"tensor {quoted(tensor.name)} ({place})"


def data_type_of(tensor: onnx.TensorProto, place: str) -> ir.DataType:
    """The element type, or an error if there is no such type."""
    try:
        dtype = ir.DataType(tensor.data_type)
    except ValueError:
        raise BadModelError(
            f"{label(tensor, place)} has the unknown element type {tensor.data_type}"
        ) from None
    if dtype == ir.DataType.UNDEFINED:
        raise BadModelError(f"{label(tensor, place)} has no element type")
    return dtype


def bytes_needed(tensor: onnx.TensorProto, place: str) -> int:
    """The bytes that the dims and the element type ask for; not defined for strings."""
    dtype = data_type_of(tensor, place)
    size = (_elements(tensor, place) * dtype.bitwidth + 7) // 8
    if size > LARGEST:
        raise BadModelError(
            f"{label(tensor, place)} claims {size} bytes by its dims {list(tensor.dims)}"
        )
    return size


def check_inline(tensor: onnx.TensorProto, place: str) -> None:
    """Refuse a tensor whose data is not what its dims and element type ask for."""
    dtype = data_type_of(tensor, place)
    if tensor.HasField("raw_data") and dtype != ir.DataType.STRING:
        given, needed, unit = len(tensor.raw_data), bytes_needed(tensor, place), "bytes"
    else:
        field = _WIDE_FIELDS.get(dtype, "int32_data")
        given, needed, unit = len(getattr(tensor, field)), _entries(tensor, place), "entries"
    if given != needed:
        raise BadModelError(
            f"{label(tensor, place)} holds {given} {unit} of data,"
            f" but its dims {list(tensor.dims)} ask for {needed}"
        )


def _entries(tensor: onnx.TensorProto, place: str) -> int:
    dtype, count = data_type_of(tensor, place), _elements(tensor, place)
    if dtype == ir.DataType.STRING:
        return count
    bytes_needed(tensor, place)
    shared = _ELEMENTS_PER_ENTRY.get(dtype.bitwidth, 1)
    return -(-count // shared) * _ENTRIES_PER_ELEMENT.get(dtype, 1)


def _elements(tensor: onnx.TensorProto, place: str) -> int:
    if any(dim < 0 for dim in tensor.dims):
        raise BadModelError(f"{label(tensor, place)} has a negative dim: {list(tensor.dims)}")
    if len(tensor.dims) > MOST_AXES:
        axes = len(tensor.dims)
        raise BadModelError(f"{label(tensor, place)} has {axes} axes, more than {MOST_AXES}")
    return math.prod(tensor.dims)
