"""Shapes and constants in another order."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt
import onnx_ir as ir

from relayout.graph.editing.contiguous import contiguous
from relayout.layout.permutation import Permutation


class PermutedTensor(ir.LazyTensor):
    """A constant stored in another order; its data moves only when it is written or read."""

    __slots__ = ("given", "order")

    def __init__(self, given: ir.TensorProtocol, order: Permutation) -> None:
        shape = ir.Shape([int(given.shape.numpy()[axis]) for axis in order])
        super().__init__(self._moved, dtype=given.dtype, shape=shape, name=given.name)
        self.given, self.order = given, order

    def _moved(self) -> ir.TensorProtocol:
        return _moved(self.given, self.order)


def permuted_shape(shape: ir.Shape | None, order: Permutation) -> ir.Shape | None:
    """The shape of a value stored in `order`; unknown if it was."""
    return None if shape is None else ir.Shape([shape[axis] for axis in order])


def permuted_tensor(tensor: ir.TensorProtocol, order: Permutation) -> ir.TensorProtocol:
    """A constant stored in `order`."""
    if tensor.dtype == ir.DataType.STRING:
        return _moved(tensor, order)  # Strings have no bytes that could be read later.
    if isinstance(tensor, PermutedTensor):
        return PermutedTensor(tensor.given, tensor.order.then(order))
    return PermutedTensor(tensor, order)


def _moved(tensor: ir.TensorProtocol, order: Permutation) -> ir.TensorProtocol:
    array = contiguous(tensor.numpy().transpose(order.axes))
    return tensor_of(array, tensor.dtype, tensor.name)


def tensor_of(
    array: npt.NDArray[Any], dtype: ir.DataType | None, name: str | None = None
) -> ir.TensorProtocol:
    """A new constant; strings have a class of their own."""
    if dtype == ir.DataType.STRING:
        return ir.StringTensor(array, shape=ir.Shape(array.shape), name=name)
    return ir.Tensor(array, dtype=dtype, name=name)
