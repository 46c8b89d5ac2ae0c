"""Reductions over any number of axes at once, none included."""

from __future__ import annotations

from typing import Any

import torch


def axes_of(x: Any, axes: list[int], empty: bool) -> tuple[int, ...]:
    """The axes to reduce: no axes named means all of them, or none if `empty`."""
    return tuple(axes) if axes or empty else tuple(range(x.dim()))


def reduce_sum(x: Any, axes: tuple[int, ...], keeps: bool) -> Any:
    return x.sum(axes, keepdim=keeps, dtype=x.dtype) if axes else x


def reduce_mean(x: Any, axes: tuple[int, ...], keeps: bool) -> Any:
    return x.mean(axes, keepdim=keeps) if axes else x


def whole_mean(x: Any, axes: tuple[int, ...], keeps: bool) -> Any:
    return x.to(torch.float64).mean(axes, keepdim=keeps).to(x.dtype)


def reduce_max(x: Any, axes: tuple[int, ...], keeps: bool) -> Any:
    if not axes:
        return x
    if x.dtype == torch.bool:
        return x.any(axes, keepdim=keeps)
    return torch.amax(filled(x, axes, is_max=True), axes, keepdim=keeps)


def reduce_min(x: Any, axes: tuple[int, ...], keeps: bool) -> Any:
    if not axes:
        return x
    if x.dtype == torch.bool:
        return x.all(axes, keepdim=keeps)
    return torch.amin(filled(x, axes, is_max=False), axes, keepdim=keeps)


def filled(x: Any, axes: tuple[int, ...], is_max: bool) -> Any:
    """The tensor itself; where there is nothing to reduce, the neutral element."""
    lengths = [1 if axis in {a % x.dim() for a in axes} else n for axis, n in enumerate(x.shape)]
    if x.numel() or 0 in lengths:
        return x
    limits = torch.finfo(x.dtype) if x.is_floating_point() else torch.iinfo(x.dtype)
    value = limits.min if is_max else limits.max
    if x.is_floating_point():
        value = float("-inf") if is_max else float("inf")
    return torch.full(lengths, value, dtype=x.dtype, device=x.device)


def reduce_prod(x: Any, axes: tuple[int, ...], keeps: bool) -> Any:
    for axis in sorted((axis % x.dim() for axis in axes), reverse=True):
        x = x.prod(axis, keepdim=keeps, dtype=x.dtype)
    return x


def reduce_l1(x: Any, axes: tuple[int, ...], keeps: bool) -> Any:
    return reduce_sum(x.abs(), axes, keeps)


def reduce_sum_square(x: Any, axes: tuple[int, ...], keeps: bool) -> Any:
    return reduce_sum(x * x, axes, keeps)


def reduce_l2(x: Any, axes: tuple[int, ...], keeps: bool) -> Any:
    if x.is_floating_point() and axes:
        return torch.linalg.vector_norm(x, dim=axes, keepdim=keeps)
    wide = x.to(torch.float64)
    return reduce_sum(wide * wide, axes, keeps).sqrt().to(x.dtype)


def reduce_log_sum(x: Any, axes: tuple[int, ...], keeps: bool) -> Any:
    return reduce_sum(x, axes, keeps).log().to(x.dtype)


def reduce_log_sum_exp(x: Any, axes: tuple[int, ...], keeps: bool) -> Any:
    if not axes:
        return x
    wide = x if x.is_floating_point() else x.to(torch.float64)
    return torch.logsumexp(wide, axes, keepdim=keeps).to(x.dtype)


def last_place(x: Any, find: Any, axis: int, keeps: bool) -> Any:
    """Where an extreme stands last."""
    return x.shape[axis] - 1 - find(x.flip(axis), axis, keepdim=keeps)


def cumulative(accumulate: Any, x: Any, axis: int, exclusive: bool, backwards: bool) -> Any:
    neutral = 0 if accumulate is torch.cumsum else 1
    x = x.flip(axis) if backwards else x
    if exclusive:
        first = torch.full_like(x.narrow(axis, 0, 1), neutral)
        x = torch.cat([first, x.narrow(axis, 0, x.shape[axis] - 1)], axis)
    result = accumulate(x, axis, dtype=x.dtype)
    return result.flip(axis) if backwards else result
