"""Views whose lengths are known only at run time."""

from __future__ import annotations

import math
from typing import Any

import torch


def reshape(x: Any, shape: list[int], copied: bool) -> Any:
    """A length of 0 stands for the one the tensor has there, if `copied`."""
    lengths = [
        x.shape[axis] if length == 0 and copied else length for axis, length in enumerate(shape)
    ]
    return x.reshape(lengths)


def unsqueeze(x: Any, axes: list[int]) -> Any:
    rank = x.dim() + len(axes)
    for axis in sorted(axis % rank for axis in axes):
        x = x.unsqueeze(axis)
    return x


def flatten(x: Any, axis: int) -> Any:
    rows = math.prod(x.shape[: axis % x.dim() if axis < 0 else axis])
    return x.reshape(rows, x.numel() // rows if rows else -1)


def expand(x: Any, shape: list[int]) -> Any:
    return x.expand(torch.broadcast_shapes(x.shape, tuple(shape)))


def depth_to_space(x: Any, block: int) -> Any:
    """The blocks are the outer part of the channels."""
    n, c, h, w = x.shape
    parts = x.reshape(n, block, block, c // block**2, h, w).permute(0, 3, 4, 1, 5, 2)
    return parts.reshape(n, c // block**2, h * block, w * block)


def space_to_depth(x: Any, block: int) -> Any:
    n, c, h, w = x.shape
    parts = x.reshape(n, c, h // block, block, w // block, block).permute(0, 3, 5, 1, 2, 4)
    return parts.reshape(n, c * block**2, h // block, w // block)
