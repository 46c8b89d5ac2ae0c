"""Operators that state other axes for the same elements."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from relayout.verify.field.values import FieldTensor, UnknownError, true_tensor

if TYPE_CHECKING:
    from relayout.verify.field.call import Computed, FieldCall, FieldKernel
    from relayout.verify.field.values import FieldValue


def identity(call: FieldCall) -> FieldValue:
    return call.operands[0]


def dropout(call: FieldCall) -> Computed:
    """What it is when a model is used: the identity, with a mask of all."""
    if call.has(2) and bool(call.true(2).ravel()[0]):
        raise UnknownError("in training")
    tensor = call.tensor(0)
    return tensor, true_tensor(np.ones(tensor.shape, bool))


def reshape(call: FieldCall) -> FieldTensor:
    tensor = call.tensor(0)
    target = call.listed("shape", ()) if "shape" in call.attributes else call.integers(1)
    if not call.integer("allowzero", 0):
        target = [tensor.shape[i] if length == 0 else length for i, length in enumerate(target)]
    return tensor.with_data(tensor.data.reshape(target))


def flatten(call: FieldCall) -> FieldTensor:
    tensor = call.tensor(0)
    axis = call.integer("axis", 1)
    axis = axis + tensor.data.ndim if axis < 0 else axis
    rows = int(np.prod(tensor.shape[:axis], dtype=np.int64))
    columns = int(np.prod(tensor.shape[axis:], dtype=np.int64))
    return tensor.with_data(tensor.data.reshape(rows, columns))


def squeeze(call: FieldCall) -> FieldTensor:
    tensor = call.tensor(0)
    axes = call.axes()
    return tensor.with_data(np.squeeze(tensor.data, None if axes is None else tuple(axes)))


def unsqueeze(call: FieldCall) -> FieldTensor:
    tensor = call.tensor(0)
    return tensor.with_data(np.expand_dims(tensor.data, tuple(call.axes() or ())))


KERNELS: dict[str, FieldKernel] = {
    "Identity": identity,
    "Dropout": dropout,
    "Reshape": reshape,
    "Flatten": flatten,
    "Squeeze": squeeze,
    "Unsqueeze": unsqueeze,
}
