"""Operators whose results come from attributes and lengths."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
from onnx import numpy_helper

from relayout.verify.field.values import FieldTensor, UnknownError, true_tensor

if TYPE_CHECKING:
    from relayout.verify.field.call import FieldCall, FieldKernel

DTYPES = {
    "value_float": np.float32,
    "value_floats": np.float32,
    "value_int": np.int64,
    "value_ints": np.int64,
    "value_string": object,
    "value_strings": object,
}


def constant(call: FieldCall) -> FieldTensor:
    (name, value), *_ = call.attributes.items()
    if name == "value":
        return true_tensor(numpy_helper.to_array(value))
    if name not in DTYPES:
        raise UnknownError(f"a constant by '{name}'")
    return true_tensor(np.array(value, DTYPES[name]))


def constant_of_shape(call: FieldCall) -> FieldTensor:
    shape = call.integers(0)
    call.context.check(shape)
    value = call.attributes.get("value")
    number = np.zeros(1, np.float32) if value is None else numpy_helper.to_array(value)
    return true_tensor(np.full(shape, number.ravel()[0], number.dtype))


def shape_of(call: FieldCall) -> FieldTensor:
    shape = call.tensor(0).shape
    rank = len(shape)
    start = min(max(_from_end(call.integer("start", 0), rank), 0), rank)
    end = min(max(_from_end(call.integer("end", rank), rank), 0), rank)
    return true_tensor(np.array(shape[start:end], np.int64))


def _from_end(place: int, rank: int) -> int:
    return place + rank if place < 0 else place


def size_of(call: FieldCall) -> FieldTensor:
    return true_tensor(np.array(call.tensor(0).data.size, np.int64))


def numbers_in_range(call: FieldCall) -> FieldTensor:
    start, limit, step = (call.true(i).ravel()[0] for i in range(3))
    count = max(int(np.ceil((limit - start) / step)), 0)
    call.context.check((count,))
    return true_tensor((start + np.arange(count) * step).astype(call.true(0).dtype))


def eye_like(call: FieldCall) -> FieldTensor:
    tensor = call.tensor(0)
    element = call.integer("dtype", tensor.element)
    rows, columns = tensor.shape
    dtype: Any = onnx.helper.tensor_dtype_to_np_dtype(element)
    return true_tensor(np.eye(rows, columns, call.integer("k", 0)).astype(dtype))


KERNELS: dict[str, FieldKernel] = {
    "Constant": constant,
    "ConstantOfShape": constant_of_shape,
    "Shape": shape_of,
    "Size": size_of,
    "Range": numbers_in_range,
    "EyeLike": eye_like,
}
