"""Resize and Upsample: along each axis a matrix of true weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from relayout.verify.field.residues import encoded
from relayout.verify.field.values import UnknownError

if TYPE_CHECKING:
    from collections.abc import Callable

    from relayout.verify.field.call import FieldCall, FieldKernel
    from relayout.verify.field.residues import Residues
    from relayout.verify.field.values import FieldTensor

_Floats = npt.NDArray[np.float64]

ROUNDINGS: dict[str, Callable[[_Floats], _Floats]] = {
    "round_prefer_floor": lambda places: np.ceil(places - 0.5),
    "round_prefer_ceil": lambda places: np.floor(places + 0.5),
    "floor": np.floor,
    "ceil": np.ceil,
}
OPERANDS_SINCE = 11


@dataclass(frozen=True, slots=True)
class _Axis:
    """One axis: its length before and after, and their ratio as the model states it."""

    length: int
    size: int
    scale: float


def resize(call: FieldCall) -> FieldTensor:
    if call.text("coordinate_transformation_mode", "") == "tf_crop_and_resize":
        raise UnknownError("with a region of interest")
    if call.integer("antialias", 0):
        raise UnknownError("with antialias")
    numbers = call.residues(0)
    for axis, stated in _stated(call, numbers.shape).items():
        if stated.size != stated.length or stated.scale != 1:
            numbers = _along(call, numbers, axis, stated)
    return call.like(numbers)


def upsample(call: FieldCall) -> FieldTensor:
    """The resize of old models: places are divided by the scale."""
    mode = {"mode": call.text("mode", "nearest"), "coordinate_transformation_mode": "asymmetric"}
    scales = call.attributes.get("scales") or call.true(1).ravel().tolist()
    old = call.of("Resize", call.tensor(0), **mode, nearest_mode="floor")
    numbers = call.residues(0)
    for axis, scale in enumerate(scales):
        length = numbers.shape[axis]
        stated = _Axis(length, int(np.floor(length * scale)), float(scale))
        numbers = _along(old, numbers, axis, stated)
    return call.like(numbers)


def _stated(call: FieldCall, shape: tuple[int, ...]) -> dict[int, _Axis]:
    """What each resized axis becomes, by scales or by sizes."""
    axes = [axis % len(shape) for axis in call.attributes.get("axes", range(len(shape)))]
    place = 2 if call.version >= OPERANDS_SINCE else 1
    scales = call.true(place).ravel() if call.has(place) else np.zeros(0)
    if scales.size:
        return {
            axis: _Axis(shape[axis], int(np.floor(shape[axis] * float(scale))), float(scale))
            for axis, scale in zip(axes, scales, strict=True)
        }
    sizes = call.integers(3)
    if call.text("keep_aspect_ratio_policy", "stretch") != "stretch":
        raise UnknownError("with a policy for the aspect ratio")
    return {
        axis: _Axis(shape[axis], size, size / shape[axis])
        for axis, size in zip(axes, sizes, strict=True)
    }


def _along(call: FieldCall, numbers: Residues, axis: int, stated: _Axis) -> Residues:
    """One axis resized: elements taken, or multiplied by a matrix of weights."""
    places = _places(call, stated)
    mode = call.text("mode", "nearest")
    moved = np.moveaxis(numbers, axis, -1)
    if mode == "nearest":
        rounding = ROUNDINGS[_rounding(call)]
        taken = np.clip(rounding(places), 0, stated.length - 1).astype(np.int64)
        return np.ascontiguousarray(np.moveaxis(moved[..., taken], -1, axis))
    weights = _linear(places, stated.length) if mode == "linear" else _cubic(call, places, stated)
    return np.moveaxis(call.product(moved, encoded(weights)), -1, axis)


def _rounding(call: FieldCall) -> str:
    before = "floor" if call.version < OPERANDS_SINCE else "round_prefer_floor"
    return call.text("nearest_mode", before)


def _places(call: FieldCall, stated: _Axis) -> _Floats:
    """Where each new element lies on the old axis."""
    places = np.arange(stated.size, dtype=np.float64)
    default = "asymmetric" if call.version < OPERANDS_SINCE else "half_pixel"
    mode = call.text("coordinate_transformation_mode", default)
    if mode == "asymmetric":
        return places / stated.scale
    if mode == "align_corners":
        step = (stated.length - 1) / (stated.size - 1) if stated.size > 1 else 0.0
        return places * step
    if mode == "pytorch_half_pixel" and stated.size == 1:
        return places * 0 - 0.5
    centred = (places + 0.5) / stated.scale - 0.5
    if mode == "half_pixel_symmetric":
        exact = stated.scale * stated.length
        return centred + stated.length / 2 * (1 - stated.size / exact)
    if mode in ("half_pixel", "pytorch_half_pixel"):
        return centred
    raise UnknownError(f"with coordinates '{mode}'")


def _linear(places: _Floats, length: int) -> _Floats:
    """Each column has the weights of one new element."""
    inside = np.clip(places, 0, length - 1)
    low = np.floor(inside).astype(np.int64)
    high = np.minimum(low + 1, length - 1)
    share = inside - low
    weights = np.zeros((length, places.size))
    columns = np.arange(places.size)
    np.add.at(weights, (low, columns), 1 - share)
    np.add.at(weights, (high, columns), share)
    return weights


def _cubic(call: FieldCall, places: _Floats, stated: _Axis) -> _Floats:
    """Four neighbours; those outside count as the outermost ones, or not at all."""
    slope = call.number("cubic_coeff_a", -0.75)
    low = np.floor(places).astype(np.int64)
    share = places - low
    weights = np.zeros((stated.length, places.size))
    columns = np.arange(places.size)
    for step in (-1, 0, 1, 2):
        weight = _cubic_weight(np.abs(share - step), slope)
        near = low + step
        if call.integer("exclude_outside", 0):
            weight = np.where((near < 0) | (near >= stated.length), 0, weight)
        np.add.at(weights, (np.clip(near, 0, stated.length - 1), columns), weight)
    if call.integer("exclude_outside", 0):
        weights /= weights.sum(0)
    return weights


def _cubic_weight(distance: _Floats, slope: float) -> _Floats:
    near = (slope + 2) * distance**3 - (slope + 3) * distance**2 + 1
    far = slope * (distance**3 - 5 * distance**2 + 8 * distance - 4)
    return np.where(distance <= 1, near, np.where(distance < 2, far, 0.0))


KERNELS: dict[str, FieldKernel] = {"Resize": resize, "Upsample": upsample}
