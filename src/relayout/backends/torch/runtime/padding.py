"""Padding of any axes in any mode."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional as F


def pad(x: Any, pads: list[int], axes: list[int] | None, mode: str, value: float) -> Any:
    axes = list(range(x.dim())) if axes is None else [axis % x.dim() for axis in axes]
    for index, axis in enumerate(axes):
        before, behind = pads[index], pads[len(axes) + index]
        if mode == "constant":
            sides = [0, 0] * (x.dim() - 1 - axis) + [before, behind]
            x = F.pad(x, sides, value=value)
        else:
            x = x.index_select(axis, padded_places(x.shape[axis], before, behind, mode, x.device))
    return x


def padded_places(length: int, before: int, behind: int, mode: str, device: Any) -> Any:
    """Which element stands at each place of a padded axis."""
    places = torch.arange(-before, length + behind, device=device)
    if mode == "edge":
        return places.clamp(0, length - 1)
    if mode == "wrap":
        return places % length
    period = max(1, 2 * (length - 1))
    places = places % period
    return torch.where(places < length, places, period - places)


def center_crop_pad(x: Any, shape: list[int], axes: list[int] | None) -> Any:
    """Each axis is cut or padded with zeros to a length, on both sides alike."""
    axes = list(range(len(shape))) if axes is None else [axis % x.dim() for axis in axes]
    for axis, wanted in zip(axes, shape, strict=True):
        missing = wanted - x.shape[axis]
        before = missing // 2 if missing > 0 else -(-missing // 2)
        sides = [0, 0] * (x.dim() - 1 - axis) + [before, missing - before]
        x = F.pad(x, sides)
    return x
