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


def saturated(x: Any, dtype: Any) -> Any:
    """A cast to a narrow type that takes the largest number for all beyond it."""
    limits = torch.finfo(dtype)
    return x.to(torch.float32).clamp(limits.min, limits.max).to(dtype)
