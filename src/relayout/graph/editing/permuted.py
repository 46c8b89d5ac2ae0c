"""Shapes and constants in another order."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from relayout.layout.permutation import Permutation


def permuted_shape(shape: ir.Shape | None, order: Permutation) -> ir.Shape | None:
    """The shape of a value stored in `order`; unknown if it was."""
    return None if shape is None else ir.Shape([shape[axis] for axis in order])


def permuted_tensor(tensor: ir.TensorProtocol, order: Permutation) -> ir.TensorProtocol:
    """A constant stored in `order`; its data moves only when it is written or read."""

    def permute() -> ir.TensorProtocol:
        array = np.ascontiguousarray(tensor.numpy().transpose(order.axes))
        return tensor_of(array, tensor.dtype, tensor.name)

    if tensor.dtype == ir.DataType.STRING:
        return permute()  # Strings have no bytes that could be read later.
    shape = ir.Shape([int(tensor.shape.numpy()[axis]) for axis in order])
    return ir.LazyTensor(permute, dtype=tensor.dtype, shape=shape, name=tensor.name)


def tensor_of(
    array: npt.NDArray[Any], dtype: ir.DataType | None, name: str | None = None
) -> ir.TensorProtocol:
    """A new constant; strings have a class of their own."""
    if dtype == ir.DataType.STRING:
        return ir.StringTensor(array, shape=ir.Shape(array.shape), name=name)
    return ir.Tensor(array, dtype=dtype, name=name)
