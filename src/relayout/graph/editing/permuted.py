"""Shapes and constants in another order."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from relayout.layout.permutation import Permutation


def permuted_shape(shape: ir.Shape | None, order: Permutation) -> ir.Shape | None:
    """The shape of a value stored in `order`; unknown if it was."""
    return None if shape is None else ir.Shape([shape[axis] for axis in order])


def permuted_tensor(tensor: ir.TensorProtocol, order: Permutation) -> ir.LazyTensor:
    """A constant stored in `order`; its data moves only when it is written or read."""

    def permute() -> ir.TensorProtocol:
        array = np.ascontiguousarray(tensor.numpy().transpose(order.axes))
        return ir.Tensor(array, dtype=tensor.dtype, name=tensor.name)

    shape = ir.Shape([int(tensor.shape.numpy()[axis]) for axis in order])
    return ir.LazyTensor(permute, dtype=tensor.dtype, shape=shape, name=tensor.name)
