"""Resizing in all the ways ONNX knows, one axis after the other."""

from __future__ import annotations

import math
from typing import Any

import torch


def resize(
    x: Any,
    scales: list[float] | None,
    sizes: list[int] | None,
    *,
    axes: list[int] | None,
    roi: list[float] | None,
    mode: str,
    coordinates: str,
    rounding: str,
    cubic: float,
    excludes: bool,
    outside: float,
    antialias: bool,
    policy: str,
) -> Any:
    """Interpolate between the pixels along each axis that changes its length."""
    axes = list(range(x.dim())) if axes is None else [axis % x.dim() for axis in axes]
    spans = resized_lengths([x.shape[axis] for axis in axes], scales, sizes, policy)
    if roi is None and all(n == x.shape[axis] for (_, n), axis in zip(spans, axes, strict=True)):
        return x  # As in ONNX Runtime, though a scale of 1.1 would move some pixels.
    result, beyond = x, None
    for index, axis in enumerate(axes):
        scale, length = spans[index]
        bounds = (0.0, 1.0) if roi is None else (roi[index], roi[index + len(axes)])
        if scale == 1 and length == x.shape[axis] and roi is None:
            continue
        places = source_places(x.shape[axis], length, scale, coordinates, bounds)
        places = places.to(torch.float64)
        if mode == "nearest":
            picked = nearest_places(places, rounding, scale).clamp(0, x.shape[axis] - 1)
            result = result.index_select(axis, picked.to(x.device))
        else:
            matrix = weights_of(places, x.shape[axis], scale, mode, cubic, excludes, antialias)
            matrix = matrix.to(result.dtype).to(x.device)
            result = torch.movedim(torch.movedim(result, axis, -1) @ matrix.t(), -1, axis)
        if coordinates == "tf_crop_and_resize":
            is_out = (places < 0) | (places > x.shape[axis] - 1)
            shape = [1] * x.dim()
            shape[axis] = -1
            is_out = is_out.to(x.device).reshape(shape)
            beyond = is_out if beyond is None else beyond | is_out
    if beyond is not None:
        result = torch.where(beyond, torch.full_like(result, outside), result)
    return result


def resized_lengths(
    lengths: list[int], scales: list[float] | None, sizes: list[int] | None, policy: str
) -> list[tuple[float, int]]:
    """The scale and the new length of each axis."""
    if sizes is None:
        given = scales or []
        return [(s, rounded_length(s, n)) for s, n in zip(given, lengths, strict=True)]
    found = [size / length for size, length in zip(sizes, lengths, strict=True)]
    if policy == "stretch":
        return list(zip(found, sizes, strict=True))
    scale = min(found) if policy == "not_larger" else max(found)
    return [(scale, math.floor(scale * length + 0.5)) for length in lengths]


def rounded_length(scale: float, length: int) -> int:
    """Scales are single precision, and so is the product."""
    return math.floor(float(torch.tensor(scale) * torch.tensor(float(length))))


def source_places(
    length: int, new: int, scale: float, coordinates: str, roi: tuple[float, float]
) -> Any:
    """Where each new pixel lies among the old ones, in single precision as in ONNX Runtime.

    Which of two pixels is the nearest one can depend on that.
    """
    steps = torch.arange(new, dtype=torch.float32)
    if coordinates == "asymmetric":
        return divided_one_by_one(steps, scale)
    if coordinates == "align_corners":
        wide = float(torch.tensor(scale, dtype=torch.float32) * length - 1)
        return divided_one_by_one(steps * (length - 1), wide or 1.0)
    if coordinates == "pytorch_half_pixel" and new <= 1:
        return torch.zeros(new)
    if coordinates == "tf_crop_and_resize":
        start, end = torch.tensor(roi, dtype=torch.float32)
        if new > 1:
            way = divided_one_by_one(steps * (end - start) * (length - 1), new - 1)
            return start * (length - 1) + way
        return 0.5 * (start + end) * (length - 1) + steps
    places = divided_one_by_one(steps + 0.5, scale)
    if coordinates == "half_pixel_symmetric":
        whole = torch.tensor([scale], dtype=torch.float32) * length
        places = length / 2 * (1 - torch.tensor([float(new)]) / whole) + places
    return places - 0.5


def divided_one_by_one(steps: Any, divisor: float) -> Any:
    """As it says: torch multiplies by the inverse of a single divisor, which rounds."""
    return steps / torch.full_like(steps, divisor)


def nearest_places(places: Any, rounding: str, scale: float) -> Any:
    """The simple way rounds up where the image becomes smaller."""
    nearest = {
        "simple": torch.ceil(places) if scale < 1 else torch.floor(places),
        "floor": torch.floor(places),
        "ceil": torch.ceil(places),
        "round_prefer_floor": torch.ceil(places - 0.5),
        "round_prefer_ceil": torch.floor(places + 0.5),
    }
    return nearest[rounding].to(torch.int64)


def weights_of(
    places: Any,
    length: int,
    scale: float,
    mode: str,
    cubic: float,
    excludes: bool,
    antialias: bool,
) -> Any:
    """A matrix with a row for each new pixel: how much of each old pixel is in it."""
    stretch = min(scale, 1.0) if antialias else 1.0
    reach = (1 if mode == "linear" else 2) / stretch
    first = torch.ceil(places - reach) if antialias else torch.floor(places) - reach + 1
    taps = first.unsqueeze(1) + torch.arange(math.ceil(2 * reach) + int(antialias))
    away = (taps - places.unsqueeze(1)).abs() * stretch
    weights = linear_weight(away) if mode == "linear" else cubic_weight(away, cubic)
    if excludes:
        weights = weights * ((taps >= 0) & (taps <= length - 1))
    if excludes or antialias:
        weights = weights / weights.sum(1, keepdim=True)
    taps = taps.clamp(0, length - 1).to(torch.int64)
    matrix = torch.zeros(places.shape[0], length, dtype=torch.float64)
    return matrix.scatter_add(1, taps, weights)


def linear_weight(away: Any) -> Any:
    return (1 - away).clamp(min=0)


def cubic_weight(away: Any, a: float) -> Any:
    near = ((a + 2) * away - (a + 3)) * away * away + 1
    far = ((a * away - 5 * a) * away + 8 * a) * away - 4 * a
    return torch.where(away <= 1, near, torch.where(away < 2, far, torch.zeros_like(far)))
