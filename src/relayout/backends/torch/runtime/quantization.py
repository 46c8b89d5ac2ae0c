"""Quantised numbers. Their products are taken in float64, where every sum of them is exact."""

from __future__ import annotations

import math
from typing import Any

import torch


def along(parameter: Any, x: Any, axis: int, block: int) -> Any:
    """A scale or zero point for each element: one for all, one a slice, or one a block."""
    if parameter.dim() == 0 or parameter.numel() == 1:
        return parameter.reshape(())
    if block:
        return parameter.repeat_interleave(block, axis).narrow(axis, 0, x.shape[axis])
    shape = [1] * x.dim()
    shape[axis] = -1
    return parameter.reshape(shape)


def scaled(x: Any, scale: Any, axis: int, block: int) -> Any:
    """Numbers in units of a scale, in its type."""
    return x.to(scale.dtype) / along(scale, x, axis, block)


def quantize(x: Any, scale: Any, zero: Any, dtype: Any, limits: Any, axis: int, block: int) -> Any:
    """`limits` are the least and the largest whole number; None for a type with fractions."""
    wide = scaled(x, scale, axis, block)
    if limits is None:
        ends = torch.finfo(dtype)
        return wide.clamp(ends.min, ends.max).to(dtype)
    wide = torch.round(wide)
    if zero is not None:
        wide = wide + along(zero, x, axis, block).to(wide.dtype)
    return wide.clamp(*limits).to(torch.int32).to(dtype)


def dequantize(x: Any, scale: Any, zero: Any, axis: int, block: int) -> Any:
    wide = x.to(scale.dtype)
    if zero is not None:
        wide = wide - along(zero, x, axis, block).to(scale.dtype)
    return wide * along(scale, x, axis, block)


def dynamic_quantize(x: Any) -> Any:
    """To unsigned bytes, by the range of the tensor, which is made to contain zero."""
    low, high = x.min().clamp(max=0), x.max().clamp(min=0)
    scale = (high - low) / 255
    scale = torch.where(scale == 0, torch.ones_like(scale), scale)
    zero = torch.round(-low / scale).clamp(0, 255)
    y = (torch.round(x / scale) + zero).clamp(0, 255)
    return y.to(torch.uint8), scale, zero.to(torch.uint8)


def centred(x: Any, zero: Any, axis: int) -> Any:
    """Numbers without their zero point, wide enough for exact sums."""
    wide = x.to(torch.float64)
    if zero is None:
        return wide
    zero = zero.to(torch.float64)
    if zero.numel() == 1:
        return wide - zero.reshape(())
    if zero.dim() > 1:
        return wide - zero
    shape = [1] * x.dim()
    shape[axis] = -1
    return wide - zero.reshape(shape)


def requantize(
    product: Any, a_scale: Any, b_scale: Any, scale: Any, zero: Any, bias: Any, trailing: int
) -> Any:
    """An exact product in the numbers of the result."""
    trail = [1] * (trailing - 1)
    if bias is not None:
        product = product + bias.to(torch.float64).reshape(-1, *trail)
    b_scale = b_scale.reshape(-1, *trail) if b_scale.dim() == 1 else b_scale
    wide = torch.round(product * (a_scale * b_scale / scale).to(torch.float64))
    limits = torch.iinfo(zero.dtype)
    wide = (wide + zero.to(torch.float64)).clamp(limits.min, limits.max)
    return wide.to(torch.int32).to(zero.dtype)


def requantize_like(x: Any, scale: Any, zero: Any) -> Any:
    """Numbers in the scale, and in the type, of a zero point."""
    limits = torch.iinfo(zero.dtype)
    return quantize(x, scale, zero, zero.dtype, (limits.min, limits.max), 0, 0)


def quantized_mean(x: Any, x_scale: Any, x_zero: Any, scale: Any, zero: Any, axes: Any) -> Any:
    """An exact sum, and one factor that makes it a mean in the numbers of the result."""
    count = math.prod(x.shape[axis] for axis in axes)
    total = (x.to(torch.int32) - x_zero.to(torch.int32)).sum(axes, keepdim=True)
    limits = torch.iinfo(zero.dtype)
    wide = torch.round(total.to(scale.dtype) * (x_scale / (scale * count)))
    wide = wide + zero.to(scale.dtype)
    return wide.clamp(limits.min, limits.max).to(torch.int32).to(zero.dtype)


# In these ONNX Runtime adds the zero point before it rounds, which decides ties of odd and even.


def rounded_from(x: Any, scale: Any, zero: Any) -> Any:
    """Numbers in the scale of a zero point, counted from it."""
    return _rounded((x / scale) + zero.to(scale.dtype), zero.dtype)


def quantized_product(
    a: Any, a_scale: Any, a_zero: Any, b: Any, b_scale: Any, b_zero: Any, scale: Any, zero: Any
) -> Any:
    real = scale.dtype
    product = (a.to(real) - a_zero.to(real)) * (b.to(real) - b_zero.to(real))
    return _rounded(product * (a_scale * b_scale / scale) + zero.to(real), zero.dtype)


def quantized_sum(
    a: Any, a_scale: Any, a_zero: Any, b: Any, b_scale: Any, b_zero: Any, scale: Any, zero: Any
) -> Any:
    """With the roundings of fused products and sums: each product is exact before it is added."""
    real = scale.dtype
    left, right = a_scale / scale, b_scale / scale
    offset = zero.to(real) - _fused(left, a_zero, right * b_zero.to(real))
    return _rounded(_fused(left, a, _fused(right, b, offset)), zero.dtype)


def _fused(factor: Any, numbers: Any, summand: Any) -> Any:
    wide = factor.to(torch.float64) * numbers.to(torch.float64) + summand.to(torch.float64)
    return wide.to(factor.dtype)


def _rounded(x: Any, dtype: Any) -> Any:
    limits = torch.iinfo(dtype)
    return torch.round(x).clamp(limits.min, limits.max).to(torch.int32).to(dtype)
