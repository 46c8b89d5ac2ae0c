"""Quantisers, and operators that are quantised as a whole: their steps around the one in floats."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from relayout.backends.litert.builder import FLOAT
from relayout.backends.litert.call import LiteCall, LiteLowering
from relayout.backends.litert.flat_graph import FlatTensor, Quantisation
from relayout.backends.litert.lower.convolution import LOWERINGS as CONVOLUTIONS
from relayout.backends.litert.lower.convolution import conv
from relayout.layout.permutation import axis_among

STORED = {np.dtype(kind) for kind in (np.int8, np.uint8, np.int16)}
CONSTANT_TYPES = STORED | {np.dtype(np.int32)}


def quantize(call: LiteCall) -> FlatTensor:
    scale = call.tensor(1)
    zero = call.tensor(2) if call.has(2) else None
    return quantised(call, call.tensor(0), scale, zero)


def dequantize(call: LiteCall) -> FlatTensor:
    tensor, scale = call.tensor(0), call.tensor(1)
    zero = call.tensor(2) if call.has(2) else None
    if call.view.integer("block_size", 0):
        raise call.refusal("LiteRT has no steps for blocks of an axis")
    is_one = math.prod(scale.shape) == 1
    axis = 0 if is_one else axis_among(call.view.integer("axis", 1), tensor.rank)
    return dequantised(call, tensor, scale, zero, axis)


def steps_of(
    call: LiteCall, scale: FlatTensor, zero: FlatTensor | None, axis: int = 0
) -> Quantisation:
    if scale.data is None or (zero is not None and zero.data is None):
        raise call.refusal("its steps are not constants")
    scales = tuple(map(float, scale.data.reshape(-1)))
    zeros = (0,) * len(scales) if zero is None else tuple(map(int, np.ravel(np.asarray(zero.data))))
    return Quantisation(scales, zeros, axis)


def quantised(
    call: LiteCall, tensor: FlatTensor, scale: FlatTensor, zero: FlatTensor | None
) -> FlatTensor:
    steps = steps_of(call, scale, zero)
    kind = np.dtype(np.uint8) if zero is None else zero.dtype
    if len(steps.scales) > 1 or kind not in STORED:
        raise call.refusal(f"LiteRT does not quantise to {kind} with {len(steps.scales)} steps")
    result = call.build.tensor(tensor.shape, kind, f"{call.build.scope}/quantize", steps)
    call.build.put_all("QUANTIZE", [tensor], [result])
    return result


def dequantised(
    call: LiteCall, tensor: FlatTensor, scale: FlatTensor, zero: FlatTensor | None, axis: int = 0
) -> FlatTensor:
    steps = steps_of(call, scale, zero, axis)
    if tensor.data is not None:
        return _constant(call, tensor, steps)
    if tensor.dtype not in STORED or len(steps.scales) > 1:
        raise call.refusal(f"LiteRT does not dequantise {tensor.dtype}")
    if tensor.steps is None:
        tensor.steps = steps
    if tensor.steps != steps:
        return _by_arithmetic(call, tensor, steps)
    return call.build.put("DEQUANTIZE", [tensor], tensor.shape, FLOAT)


def _constant(call: LiteCall, tensor: FlatTensor, steps: Quantisation) -> FlatTensor:
    """Numbers that lie on steps, which they keep for builtins that work on bytes."""
    if tensor.data is None:
        raise call.refusal("it is not a constant")
    lengths = [1] * tensor.rank
    if len(steps.scales) > 1:
        lengths[steps.axis] = -1
    scale = np.asarray(steps.scales, np.float32).reshape(lengths)
    zero = np.asarray(steps.zero_points, np.int64).reshape(lengths)
    numbers = (tensor.data.astype(np.int64) - zero).astype(np.float32) * scale
    result = call.build.constant(numbers.astype(np.float32), hint=tensor.name)
    if tensor.dtype in CONSTANT_TYPES:
        result = call.build.unshared(result)
        result.steps = steps
    return result


def _by_arithmetic(call: LiteCall, tensor: FlatTensor, steps: Quantisation) -> FlatTensor:
    """Bytes that are read with other steps than they were written with."""
    build = call.build
    numbers = build.cast(tensor, np.float32)
    numbers.steps = None
    shifted = build.with_scalar("SUB", numbers, steps.zero_points[0])
    return build.with_scalar("MUL", shifted, steps.scales[0])


def _part(call: LiteCall, first: int) -> FlatTensor:
    """An operand that is followed by its scale and its zero point."""
    zero = call.tensor(first + 2) if call.has(first + 2) else None
    return dequantised(call, call.tensor(first), call.tensor(first + 1), zero)


def _back(call: LiteCall, result: FlatTensor, first: int) -> FlatTensor:
    zero = call.tensor(first + 1) if call.has(first + 1) else None
    return quantised(call, result, call.tensor(first), zero)


def _in_floats(call: LiteCall, *operands: FlatTensor | None) -> LiteCall:
    return replace(call, operands=operands)


def _convolution(call: LiteCall, weight_axis: int) -> tuple[FlatTensor, FlatTensor, LiteCall]:
    """Operand, weight and bias of a quantised convolution as numbers."""
    tensor = _part(call, 0)
    zero = call.tensor(5) if call.has(5) else None
    weight = dequantised(call, call.tensor(3), call.tensor(4), zero, weight_axis)
    bias = None
    if call.has(8):
        scales = np.asarray(call.constant(4, "scale"), np.float64).reshape(-1)
        scales = scales * float(call.constant(1, "scale").reshape(-1)[0])
        steps = Quantisation(tuple(map(float, scales)), (0,) * scales.size)
        bias = _constant(call, call.tensor(8), steps)
    return tensor, weight, _in_floats(call, tensor, weight, bias)


def qlinear_conv(call: LiteCall) -> FlatTensor:
    _, _, inner = _convolution(call, 0)
    result = CONVOLUTIONS["Conv"](inner)
    if not isinstance(result, FlatTensor):
        raise call.refusal("it has several results")
    return _back(call, result, 6)


def qlinear_conv_last(call: LiteCall) -> FlatTensor:
    tensor, weight, inner = _convolution(call, 0)
    return _back(call, conv(inner, tensor, weight), 6)


def qlinear_matmul(call: LiteCall) -> FlatTensor:
    left = _part(call, 0)
    zero = call.tensor(5) if call.has(5) else None
    right = dequantised(call, call.tensor(3), call.tensor(4), zero, max(call.tensor(3).rank - 1, 0))
    if right.data is not None and right.rank == 2:
        weight = call.build.transpose(right, (1, 0))
        return _back(call, call.build.linear(left, weight), 6)
    return _back(call, call.build.product(left, right), 6)


def qgemm(call: LiteCall) -> FlatTensor:
    """A quantised Gemm; without steps for its result it gives floats."""
    left = _part(call, 0)
    trans_b = bool(call.view.integer("transB", 0))
    zero = call.tensor(5) if call.has(5) else None
    right = dequantised(call, call.tensor(3), call.tensor(4), zero, 0 if trans_b else 1)
    if call.view.integer("transA", 0) or call.number("alpha", 1.0) != 1.0 or right.data is None:
        raise call.refusal("LiteRT has no such product of bytes")
    bias = None
    if call.has(6):
        weights = np.asarray(call.constant(4, "scale"), np.float64).reshape(-1)
        scales = weights * float(call.constant(1, "scale").reshape(-1)[0])
        steps = Quantisation(tuple(map(float, scales)), (0,) * scales.size)
        bias = _constant(call, call.tensor(6), steps)
    weight = right if trans_b else call.build.transpose(right, (1, 0))
    result = call.build.linear(left, weight, bias)
    return _back(call, result, 7) if call.has(7) else result


def qlinear_binary(builtin: str) -> LiteLowering:
    def lower(call: LiteCall) -> FlatTensor:
        return _back(call, call.build.broadcasting(builtin, [_part(call, 0), _part(call, 3)]), 6)

    return lower


def qlinear_unary(builtin: str) -> LiteLowering:
    return lambda call: _back(call, call.build.unary(builtin, _part(call, 0)), 3)


def qlinear_leaky_relu(call: LiteCall) -> FlatTensor:
    alpha = call.number("alpha", 0.01)
    return _back(call, call.build.unary("LEAKY_RELU", _part(call, 0), alpha=alpha), 3)


def qlinear_concat(call: LiteCall) -> FlatTensor:
    parts = [_part(call, first) for first in range(2, len(call.operands), 3)]
    axis = axis_among(call.view.integer("axis", 0), parts[0].rank)
    return _back(call, call.build.concat(parts, axis), 0)


def qlinear_mean(call: LiteCall) -> FlatTensor:
    """A global average pool, whose channels may be last."""
    tensor = _part(call, 0)
    is_last = bool(call.view.integer("channels_last", 0))
    axes: Sequence[int] = range(1, tensor.rank - 1) if is_last else range(2, tensor.rank)
    return _back(call, call.build.reduce("MEAN", tensor, list(axes)), 3)


LOWERINGS: dict[str, LiteLowering] = {
    "DequantizeLinear": dequantize,
    "QLinearConv": qlinear_conv,
    "QLinearMatMul": qlinear_matmul,
    "QuantizeLinear": quantize,
}

CHANNELS_LAST: dict[str, LiteLowering] = {"QLinearConv": qlinear_conv_last}

CONTRIB: dict[str, LiteLowering] = {
    "DequantizeLinear": dequantize,
    "QGemm": qgemm,
    "QLinearAdd": qlinear_binary("ADD"),
    "QLinearConcat": qlinear_concat,
    "QLinearGlobalAveragePool": qlinear_mean,
    "QLinearLeakyRelu": qlinear_leaky_relu,
    "QLinearMul": qlinear_binary("MUL"),
    "QLinearSigmoid": qlinear_unary("LOGISTIC"),
    "QuantizeLinear": quantize,
}
