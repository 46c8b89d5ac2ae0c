"""Quantisers: from bytes by a line, to bytes by a hash of number, scale and zero point."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import onnx

from relayout.verify.field.hashing import hashed, hashed_along
from relayout.verify.field.operators.contraction import multiplied_matrices
from relayout.verify.field.operators.convolution import convolved, per_channel
from relayout.verify.field.residues import added, multiplied, subtracted
from relayout.verify.field.values import FieldTensor, residue_tensor

if TYPE_CHECKING:
    from relayout.verify.field.call import Computed, FieldCall, FieldKernel
    from relayout.verify.field.residues import Residues

UINT8 = onnx.TensorProto.UINT8
ZERO = np.zeros((), np.int64)


def quantised(
    call: FieldCall, numbers: Residues, scale: Residues, zero: Residues, element: int
) -> FieldTensor:
    operands = np.broadcast_arrays(numbers, scale, zero)
    return residue_tensor(hashed(call.key("quantise", element), operands), element)


def dequantised(numbers: Residues, scale: Residues, zero: Residues) -> Residues:
    return multiplied(subtracted(numbers, zero), scale)


def quantize(call: FieldCall) -> FieldTensor:
    numbers = call.residues(0)
    scale = _aligned(call, call.residues(1), numbers)
    zero = _aligned(call, call.residues(2), numbers) if call.has(2) else ZERO
    element = call.tensor(2).element if call.has(2) else call.integer("output_dtype", 0) or UINT8
    return quantised(call, numbers, scale, zero, element)


def dequantize(call: FieldCall) -> FieldTensor:
    numbers = call.residues(0)
    scale = _aligned(call, call.residues(1), numbers)
    zero = _aligned(call, call.residues(2), numbers) if call.has(2) else ZERO
    return call.like(dequantised(numbers, scale, zero), 1)


def _aligned(call: FieldCall, parameter: Residues, numbers: Residues) -> Residues:
    """A scale or zero point: one for all, one an entry of an axis, or one a block along it."""
    if parameter.size == 1:
        return parameter.reshape(())
    axis = call.integer("axis", 1)
    if parameter.ndim == 1:
        shape = [1] * numbers.ndim
        shape[axis] = -1
        return parameter.reshape(shape)
    block = call.integer("block_size", 0)
    if not block:
        return parameter
    return np.take(np.repeat(parameter, block, axis), range(numbers.shape[axis]), axis)


def dynamic_quantize(call: FieldCall) -> Computed:
    """Scale and zero point are functions of the multiset of all elements."""
    numbers = call.residues(0)
    axes = range(numbers.ndim)
    scale, zero = (
        hashed_along(call.key(name), numbers, axes, keep=False)
        for name in ("dynamic scale", "dynamic zero point")
    )
    result = quantised(call, numbers, scale, zero, UINT8)
    return result, residue_tensor(scale), residue_tensor(zero, UINT8)


def operand(call: FieldCall, place: int, channels: int | None = None) -> Residues:
    """An operand that its scale and zero point follow, as numbers; per entry of an axis or not."""
    numbers, scale = call.residues(place), call.residues(place + 1)
    zero = call.residues(place + 2) if call.has(place + 2) else ZERO
    if channels is not None and scale.size > 1:
        shape = [1] * numbers.ndim
        shape[channels] = -1
        scale, zero = scale.reshape(shape), zero.reshape(shape) if zero.size > 1 else zero
    return dequantised(numbers, _single(scale), _single(zero))


def _single(parameter: Residues) -> Residues:
    return parameter.reshape(()) if parameter.size == 1 else parameter


def result_of(call: FieldCall, numbers: Residues, place: int, element: int) -> FieldTensor:
    """Numbers with the scale and zero point at a place."""
    zero = call.residues(place + 1) if call.has(place + 1) else ZERO
    return quantised(call, numbers, _single(call.residues(place)), _single(zero), element)


def qlinear_conv(call: FieldCall) -> FieldTensor:
    result = convolved(call, operand(call, 0), operand(call, 3, channels=0))
    if call.has(8):
        step = multiplied(call.residues(1), call.residues(4))
        bias = multiplied(call.residues(8), step)
        result = added(result, per_channel(bias, result.ndim))
    return result_of(call, result, 6, call.tensor(0).element)


def qlinear_matmul(call: FieldCall) -> FieldTensor:
    left, right = call.residues(0), call.residues(3)
    columns = right.ndim - 1
    product = multiplied_matrices(call, operand(call, 0, left.ndim - 2), operand(call, 3, columns))
    return result_of(call, product, 6, call.tensor(0).element)


KERNELS: dict[str, FieldKernel] = {
    "QuantizeLinear": quantize,
    "DequantizeLinear": dequantize,
    "DynamicQuantizeLinear": dynamic_quantize,
    "QLinearConv": qlinear_conv,
    "QLinearMatMul": qlinear_matmul,
}
