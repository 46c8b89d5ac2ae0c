"""Resizes: by a builtin that samples the same places, or axis by axis."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from relayout.backends.litert.builder import INT32
from relayout.backends.litert.call import LiteCall, LiteLowering
from relayout.backends.litert.flat_graph import FlatData, FlatTensor
from relayout.backends.litert.lower.sampling import Sampling, builtin_nearest, matrix, nearest
from relayout.layout.permutation import axis_among

FLAGS = ((False, False), (True, False), (False, True))
"""align_corners and half_pixel_centers; the schema forbids both."""
CLOSE = 1e-5


@dataclass(frozen=True, slots=True)
class ResizedAxis:
    """One axis that changes: its lengths, and by how much it is stretched."""

    axis: int
    length: int
    target: int
    scale: float


def resize(call: LiteCall) -> FlatTensor:
    """Channels first or last: an axis that changes is named by its place."""
    tensor = call.tensor(0)
    mode = call.view.string("mode", "nearest")
    sampling = _sampling(call)
    axes = [each for each in _axes(call, tensor) if each.target != each.length or _moves(each)]
    if mode == "nearest":
        return _nearest(call, tensor, axes, sampling)
    if mode not in {"linear", "cubic"}:
        raise call.refusal(f"LiteRT has no {mode} resize")
    if mode == "linear" and [each.axis for each in axes] in ([1, 2], [1], [2]) and tensor.rank == 4:
        found = _bilinear(call, tensor, axes, sampling)
        if found is not None:
            return found
    for each in axes:
        weights = matrix(each.length, each.target, each.scale, sampling)
        tensor = _weighted(call, tensor, each.axis, weights)
    return tensor


def _moves(each: ResizedAxis) -> bool:
    return abs(each.scale - 1.0) > CLOSE


def _sampling(call: LiteCall) -> Sampling:
    is_upsample = call.op_type == "Upsample" or call.view.version < 11
    transform = call.view.string("coordinate_transformation_mode", "half_pixel")
    view = call.view
    if view.integer("antialias", 0) or view.integer("exclude_outside", 0):
        raise call.refusal("LiteRT has no resize that looks further than its neighbours")
    if transform == "tf_crop_and_resize":
        raise call.refusal("LiteRT has no resize of a part")
    return Sampling(
        "asymmetric" if is_upsample else transform,
        "floor" if is_upsample else view.string("nearest_mode", "round_prefer_floor"),
        view.string("mode", "nearest"),
        call.number("cubic_coeff_a", -0.75),
    )


def _axes(call: LiteCall, tensor: FlatTensor) -> list[ResizedAxis]:
    axes = call.view.ints("axes") or tuple(range(tensor.rank))
    places = [axis_among(axis, tensor.rank) for axis in axes]
    if call.has(3):
        if call.view.string("keep_aspect_ratio_policy", "stretch") != "stretch":
            raise call.refusal("LiteRT has no resize that keeps an aspect ratio")
        sizes = [int(n) for n in call.constant(3, "sizes")]
        return [
            ResizedAxis(axis, tensor.shape[axis], size, size / tensor.shape[axis])
            for axis, size in zip(places, sizes, strict=True)
        ]
    index = 1 if call.op_type == "Upsample" or call.view.version < 11 else 2
    scales = call.view.floats("scales")
    if scales is None:
        scales = tuple(map(float, call.constant(index, "scales")))
    return [
        ResizedAxis(axis, tensor.shape[axis], int(np.floor(tensor.shape[axis] * s)), s)
        for axis, s in zip(places, scales, strict=True)
    ]


def _nearest(
    call: LiteCall, tensor: FlatTensor, axes: list[ResizedAxis], sampling: Sampling
) -> FlatTensor:
    """The builtin where it takes the same places, or else these places one after the other."""
    wanted = {each.axis: nearest(each.length, each.target, each.scale, sampling) for each in axes}
    if tensor.rank == 4 and set(wanted) <= {1, 2}:
        lengths = [(tensor.shape[i], wanted[i].size if i in wanted else 0) for i in (1, 2)]
        for flags in FLAGS:
            if all(
                i not in wanted
                or np.array_equal(wanted[i], builtin_nearest(*lengths[i - 1], *flags))
                for i in (1, 2)
            ) and _keeps_others(tensor, wanted, flags):
                return _builtin(call, "RESIZE_NEAREST_NEIGHBOR", tensor, axes, flags)
    for axis, places in wanted.items():
        tensor = call.build.places(tensor, places, axis)
    return tensor


def _keeps_others(
    tensor: FlatTensor, wanted: dict[int, FlatData], flags: tuple[bool, bool]
) -> bool:
    """Whether an axis that is not resized stays as it is."""
    return all(
        np.array_equal(builtin_nearest(n, n, *flags), np.arange(n))
        for n in (tensor.shape[i] for i in (1, 2) if i not in wanted)
    )


def _bilinear(
    call: LiteCall, tensor: FlatTensor, axes: list[ResizedAxis], sampling: Sampling
) -> FlatTensor | None:
    """The builtin where it weighs its neighbours as asked, along all axes."""
    for flags, transform in zip(FLAGS, ("asymmetric", "align_corners", "half_pixel"), strict=True):
        own = Sampling(transform, "floor", "linear", 0.0)
        pairs = [
            (
                matrix(each.length, each.target, each.scale, sampling),
                matrix(each.length, each.target, each.target / each.length, own),
            )
            for each in axes
        ]
        if all(np.allclose(*pair, rtol=0, atol=CLOSE) for pair in pairs):
            return _builtin(call, "RESIZE_BILINEAR", tensor, axes, flags)
    return None


def _builtin(
    call: LiteCall,
    builtin: str,
    tensor: FlatTensor,
    axes: list[ResizedAxis],
    flags: tuple[bool, bool],
) -> FlatTensor:
    shape = list(tensor.shape)
    for each in axes:
        shape[each.axis] = each.target
    size = call.build.constant(shape[1:3], INT32)
    align, half = flags
    options = {"alignCorners": align, "halfPixelCenters": half}
    return call.build.put(builtin, [tensor, size], tuple(shape), **options)


def _weighted(call: LiteCall, tensor: FlatTensor, axis: int, weights: FlatData) -> FlatTensor:
    """Sums of entries along an axis, as a product with a matrix."""
    build = call.build
    before = math.prod(tensor.shape[:axis])
    after = math.prod(tensor.shape[axis + 1 :])
    flat = build.reshape(tensor, (before, tensor.shape[axis], after))
    wide = np.broadcast_to(weights.astype(tensor.dtype), (1, *weights.shape))
    result = build.product(build.constant(wide), flat)
    return build.reshape(
        result, (*tensor.shape[:axis], weights.shape[0], *tensor.shape[axis + 1 :])
    )


LOWERINGS: dict[str, LiteLowering] = {"Resize": resize, "Upsample": resize}

CHANNELS_LAST: dict[str, LiteLowering] = {"Resize": resize}
