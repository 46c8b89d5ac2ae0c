"""Normalisations with outputs, shapes or parameters that torch's own lack."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch.nn import functional as F


def batch_norm_training(
    x: Any, scale: Any, bias: Any, mean: Any, var: Any, epsilon: float, momentum: float
) -> Any:
    """By the statistics of the batch, which also go into the running ones."""
    axes = [axis for axis in range(x.dim()) if axis != 1]
    batch_var, batch_mean = torch.var_mean(x, axes, correction=0)
    y = F.batch_norm(x, batch_mean, batch_var, scale, bias, eps=epsilon)
    running_mean = mean * momentum + batch_mean * (1 - momentum)
    return y, running_mean, var * momentum + batch_var * (1 - momentum)


def instance_norm(x: Any, scale: Any, bias: Any, epsilon: float) -> Any:
    if x.numel() and math.prod(x.shape[2:]) > 1:
        return F.instance_norm(x, weight=scale, bias=bias, eps=epsilon)
    # Torch refuses no element, and a single one, of which nothing but the bias is left.
    return torch.zeros_like(x) + bias.reshape(-1, *[1] * (x.dim() - 2))


def layer_norm(x: Any, scale: Any, bias: Any, axis: int, epsilon: float) -> Any:
    y = F.layer_norm(x, x.shape[axis:], eps=epsilon) * scale
    return y if bias is None else y + bias


def layer_norm_statistics(x: Any, scale: Any, bias: Any, axis: int, epsilon: float) -> Any:
    axes = tuple(range(axis % x.dim(), x.dim()))
    wide = x.to(torch.float32) if x.element_size() < 4 else x
    var, mean = torch.var_mean(wide, axes, correction=0, keepdim=True)
    inverse = torch.rsqrt(var + epsilon)
    y = ((wide - mean) * inverse).to(x.dtype) * scale
    return y if bias is None else y + bias, mean, inverse


def rms_norm(x: Any, scale: Any, axis: int, epsilon: float) -> Any:
    return F.rms_norm(x, x.shape[axis:], eps=epsilon) * scale


def local_response(x: Any, size: int, alpha: float, beta: float, bias: float) -> Any:
    """An even window reaches one further to the back."""
    square = F.pad(x * x, [0, 0] * (x.dim() - 2) + [(size - 1) // 2, size // 2])
    total = square.unfold(1, size, 1).sum(-1)
    return x / (bias + alpha / size * total) ** beta


def lp_normalization(x: Any, axis: int, p: int) -> Any:
    """What has no length stays zero."""
    length = torch.linalg.vector_norm(x, p, axis, keepdim=True)
    return torch.where(length == 0, torch.zeros_like(x), x / length)


def mean_variance(x: Any, axes: Sequence[int]) -> Any:
    var, mean = torch.var_mean(x, tuple(axes), correction=0, keepdim=True)
    return (x - mean) / (torch.sqrt(var) + 1e-9)


def over_the_rest(function: Any, x: Any, axis: int) -> Any:
    """A function along all axes from one on, as if they were one."""
    return function(x.flatten(axis), -1).reshape(x.shape)


def hardmax(x: Any, axis: int) -> Any:
    if not x.shape[axis]:
        return x
    first = x.argmax(axis, keepdim=True)
    return torch.zeros_like(x).scatter(axis, first, 1)
