"""Samples for `relayout.ops.movement`."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.samples.sample import Array, Sample, counting, ints, small, versions

CONSTANT = frozenset({1, 2, 3, 4})
X = counting(2, 3, 4, 5)


def floats(*values: float) -> Array:
    return np.asarray(values, np.float32)


def _slices(version: int) -> list[Sample]:
    if version < 10:
        whole = {"starts": [0, 1], "ends": [2, -1]}
        return [
            Sample("Slice", version, [X], whole, note="first-axes"),
            Sample("Slice", version, [X], {**whole, "axes": [3, 1]}),
        ]
    starts, ends, axes, steps = ints(4, 0), ints(-9, 2), ints(3, 1), ints(-2, 1)
    narrow = [part.astype(np.int32) for part in (ints(0, 1), ints(2, 3))]
    return [
        Sample("Slice", version, [X, starts, ends, axes, steps], constants=CONSTANT),
        Sample(
            "Slice", version, [X, starts, ends, ints(-1, -3), steps], constants=CONSTANT, note="-"
        ),
        Sample("Slice", version, [X, starts, ends, axes, steps], constants=frozenset({3, 4})),
        Sample("Slice", version, [X, starts, ends, axes, steps], note="run-time-axes"),
        Sample("Slice", version, [X, *narrow, narrow[1] - 2], note="narrow-run-time-axes"),
        Sample("Slice", version, [X, ints(0, 1), ints(2, 3), None, ints(1, 2)], constants=CONSTANT),
        Sample("Slice", version, [X, *narrow], constants=CONSTANT, note="narrow"),
        Sample("Slice", version, [X, *narrow], note="narrow-run-time"),
    ]


def _pads(version: int) -> list[Sample]:
    """Pads that crop run in onnxruntime: the reference evaluator has no negative ones."""
    pads = ints(0, 1, 2, 3, 1, 0, 2, -1)
    if version < 11:
        return [
            Sample("Pad", version, [X], {"pads": pads.tolist(), "value": 7.0}, runtime="ort"),
            Sample("Pad", version, [X], {"pads": [0, 1, 2, 3, 1, 0, 2, 1], "mode": "edge"}),
        ]
    value = np.asarray(7, np.float32)
    inner = ints(0, 1, 2, 3, 1, 0, 1, 2)
    samples = [
        Sample("Pad", version, [X, pads, value], constants=CONSTANT, runtime="ort"),
        Sample("Pad", version, [X, pads, value], note="run-time", runtime="ort"),
        Sample("Pad", version, [X, inner, value], note="run-time-inner"),
        Sample("Pad", version, [X, inner], {"mode": "reflect"}, CONSTANT),
        Sample("Pad", version, [X, ints(0, 1, 0, 2, 0, 0, 0, 1)], constants=CONSTANT),
    ]
    if version < 18:
        return samples
    some = ints(1, 2, 3, 0)
    return [
        *samples,
        Sample("Pad", version, [X, some, value, ints(-1, 1)], constants=CONSTANT),
        Sample("Pad", version, [X, some, None, ints(3, 1)], {"mode": "edge"}, frozenset({3})),
        Sample("Pad", version, [X, some, None, ints(3, 1)], note="run-time-axes"),
        Sample("Pad", version, [X, some, None, ints(-1, 1)], note="run-time-negative-axes"),
        *([Sample("Pad", version, [X, inner], {"mode": "wrap"}, CONSTANT)] if version > 18 else []),
    ]


def _tiles(version: int) -> list[Sample]:
    return [
        Sample("Tile", version, [X, ints(1, 2, 3, 1)], constants=CONSTANT),
        Sample("Tile", version, [X, ints(1, 2, 3, 1)], note="run-time"),
    ]


def _upsamples(version: int) -> list[Sample]:
    scales = floats(1, 1, 2, 3)
    if version < 9:
        return [Sample("Upsample", version, [X], {"scales": scales.tolist()}, runtime="ort")]
    return [
        Sample("Upsample", version, [X, scales], constants=CONSTANT),
        Sample("Upsample", version, [X, scales], note="run-time"),
    ]


KERNELS = {"nearest": None, "linear": 7, "cubic": 3}
"""How many orders of N, C, H, W besides the given one runtimes can interpolate H and W in."""

EIGHT_ORDERS = 8
"""Those that store C and W where H and W, or H and W of channels last, are expected."""


def _resize(
    version: int, inputs: list[Array | None], constants: frozenset[int], **named: Any
) -> Sample:
    note = "-".join([*map(str, named.values()), "run-time" if not constants else ""])
    mode = named.get("mode", "nearest")
    admits = EIGHT_ORDERS if (mode, "axes" in named) == ("linear", True) else KERNELS[mode]
    return Sample(
        "Resize", version, [X, *inputs], named, constants, admits=admits, note=note, tolerance=1e-5
    )


def _resizes_by_scales(version: int) -> list[Sample]:
    """The form of opset 10, which the reference evaluator does not know."""
    nearest, linear = {"mode": "nearest"}, {"mode": "linear"}
    scales, matrix = floats(1, 1, 2, 0.6), counting(4, 5)
    return [
        Sample("Resize", version, [X, scales], nearest, CONSTANT, runtime="ort"),
        Sample("Resize", version, [X, scales], nearest, note="run-time", runtime="ort"),
        Sample(
            "Resize", version, [matrix, scales[2:]], linear, CONSTANT, runtime="ort", tolerance=1e-5
        ),
    ]


def _resizes(version: int) -> list[Sample]:
    scales, sizes = floats(1, 1, 2, 0.6), ints(2, 3, 7, 3)
    by_scales: list[Array | None] = [floats(), scales]
    roi = floats(0, 0, 0.25, 0.5, 1, 1, 0.75, 1)
    samples = [
        _resize(version, by_scales, CONSTANT, mode="nearest"),
        _resize(version, by_scales, CONSTANT, mode="linear"),
        _resize(version, by_scales, frozenset(), mode="nearest"),
        _resize(version, [None, floats(), sizes], CONSTANT, mode="cubic"),
        _resize(version, [None, None, sizes], frozenset(), mode="nearest"),
        _resize(
            version,
            [roi, scales],
            CONSTANT,
            mode="linear",
            coordinate_transformation_mode="tf_crop_and_resize",
        ),
    ]
    return samples if version < 18 else [*samples, *_resizes_of_some_axes(version)]


def _resizes_of_some_axes(version: int) -> list[Sample]:
    some: list[Array | None] = [None, None, ints(7, 6)]
    policies = ("stretch", "not_larger", "not_smaller")
    return [
        _resize(version, [None, floats(2, 0.6)], frozenset(), mode="linear", axes=[3, 1]),
        Sample(
            "Resize",
            version,
            [X, None, floats(2, 3)],
            {"axes": [-1, 1]},
            CONSTANT,
            note="-",
            runtime="ort",
        ),
        *(
            _resize(version, some, CONSTANT, axes=[3, 1], keep_aspect_ratio_policy=policy)
            for policy in policies
        ),
        _resize(
            version, [None, None, ints(2, 3, 7, 9)], CONSTANT, keep_aspect_ratio_policy="not_larger"
        ),
    ]


def _center_crop_pads(version: int) -> list[Sample]:
    whole = ints(3, 3, 2, 8)
    return [
        Sample("CenterCropPad", version, [X, whole], constants=CONSTANT),
        Sample("CenterCropPad", version, [X, whole], note="run-time"),
        Sample("CenterCropPad", version, [X, ints(2, 8)], {"axes": [-1, 1]}, CONSTANT),
    ]


def _trilus(version: int) -> list[Sample]:
    k = np.asarray(1, np.int64)
    return [
        Sample("Trilu", version, [counting(3, 4)]),
        Sample("Trilu", version, [X], {"upper": 0}, admits=3),
        Sample("Trilu", version, [X, k], {"upper": 1}, CONSTANT, admits=3),
        Sample("Trilu", version, [small(4, 2, 3), -k], {"upper": 0}, CONSTANT, admits=1),
        Sample("Trilu", version, [X, k], admits=1, note="run-time"),
    ]


SAMPLES: list[Sample] = [
    *(sample for v in versions("Slice") for sample in _slices(v)),
    *(sample for v in versions("Pad") for sample in _pads(v)),
    *(sample for v in versions("Tile") for sample in _tiles(v)),
    *(sample for v in versions("Upsample") for sample in _upsamples(v)),
    *(
        sample
        for v in versions("Resize")
        for sample in (_resizes if v > 10 else _resizes_by_scales)(v)
    ),
    *(sample for v in versions("CenterCropPad") for sample in _center_crop_pads(v)),
    *(sample for v in versions("Trilu") for sample in _trilus(v)),
]
