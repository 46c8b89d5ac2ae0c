"""Samples for `relayout.ops.convolution`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from tests.samples.sample import Array, Sample, small, versions

SPATIAL_ORDERS = {3: 0, 4: 1, 5: 1}
"""For each rank, how many of the orders tried leave axes 0 and 1 in place."""


def _sample(
    op_type: str, version: int, inputs: list[Array | None], constants: tuple[int, ...], **named: Any
) -> Sample:
    assert inputs[0] is not None
    return Sample(
        op_type,
        version,
        inputs,
        named,
        frozenset(constants),
        admits=SPATIAL_ORDERS[inputs[0].ndim],
        note=f"{named}{list(constants)}".replace(" ", ""),
    )


def _convs(version: int) -> list[Sample]:
    x, w, bias = small(2, 4, 7, 8), small(6, 4, 3, 2), small(6)
    window: dict[str, Any] = {"kernel_shape": [3, 2], "strides": [1, 2], "dilations": [2, 1]}
    return [
        _sample("Conv", version, [x, w], ()),
        _sample("Conv", version, [x, w, bias], (1, 2), **window, pads=[0, 1, 2, 3]),
        _sample("Conv", version, [x, small(6, 2, 3, 2), bias], (), group=2, strides=[2, 1]),
        _sample("Conv", version, [x, w], (1,), auto_pad="SAME_UPPER", strides=[1, 2]),
        _sample("Conv", version, [small(2, 4, 7), small(6, 4, 3)], (1,), strides=[2], pads=[1, 2]),
        _sample(
            "Conv",
            version,
            [small(2, 2, 4, 5, 6), small(3, 2, 3, 2, 1)],
            (1,),
            strides=[1, 2, 3],
            pads=[0, 1, 2, 2, 1, 0],
        ),
    ]


def _pointwise(version: int) -> list[Sample]:
    """Windows of one element: how many orders have a batch before the channels, or keep the place.

    With the channels last they are products.
    """
    cases: list[tuple[tuple[int, ...], int, dict[str, Any]]] = [
        ((2, 4, 5), 3, {}),
        ((2, 4, 7, 8), 17, {"kernel_shape": [1, 1], "pads": [0, 0, 0, 0], "strides": [1, 1]}),
        ((2, 4, 7, 8), 17, {"auto_pad": "SAME_UPPER", "dilations": [2, 3]}),
        ((2, 3, 4, 5, 6), 5, {"auto_pad": "VALID"}),
        ((2, 4, 7, 8), 1, {"strides": [2, 1]}),
        ((2, 4, 7, 8), 1, {"pads": [0, 0, 1, 0]}),
    ]
    found = []
    for shape, admits, named in cases:
        weight = small(6, shape[1], *(1 for _ in shape[2:]))
        for operands in ([small(*shape), weight], [small(*shape), weight, small(6)]):
            sample = _sample("Conv", version, [*operands], (1,), **named)
            found.append(replace(sample, admits=admits))
    return [*found, *(replace(sample, admits=11) for sample in _never_products(version))]


def _never_products(version: int) -> list[Sample]:
    """Windows of one element with groups, or with a weight known only at run time."""
    x, bias = small(2, 4, 7, 8), small(6)
    return [
        _sample("Conv", version, [x, small(6, 2, 1, 1), bias], (1,), group=2),
        _sample("Conv", version, [x, small(6, 4, 1, 1), bias], ()),
    ]


def _transposed(version: int) -> list[Sample]:
    x, w = small(2, 4, 3, 5), small(4, 6, 3, 2)
    sized = {"strides": [2, 3], "output_shape": [8, 14]}
    return [
        _sample("ConvTranspose", version, [x, w], ()),
        _sample(
            "ConvTranspose", version, [x, w, small(6)], (1, 2), strides=[1, 2], pads=[0, 1, 2, 0]
        ),
        _sample("ConvTranspose", version, [x, w], (1,), strides=[2, 3], output_padding=[1, 2]),
        _sample("ConvTranspose", version, [x, w], (1,), **sized),
        _sample("ConvTranspose", version, [small(2, 4, 3), small(4, 6, 2)], (), dilations=[2]),
    ]


def _integer(version: int) -> list[Sample]:
    x = small(2, 3, 5, 6, dtype=np.uint8, low=0, high=9)
    w = small(4, 3, 3, 2, dtype=np.uint8, low=0, high=9)
    zero = np.asarray(2, np.uint8)
    return [
        _sample("ConvInteger", version, [x, w], (1,), pads=[0, 1, 2, 0]),
        _sample("ConvInteger", version, [x, w, zero, zero], (1, 2, 3), strides=[2, 1]),
        replace(
            _sample("ConvInteger", version, [x, w[..., :1, :1], zero, zero], (1, 2, 3)), admits=11
        ),
    ]


def _quantised(version: int) -> list[Sample]:
    x = small(2, 3, 5, 6, dtype=np.uint8, low=0, high=9)
    w = small(4, 3, 3, 2, dtype=np.uint8, low=0, high=9)
    scale, zero = np.asarray(0.5, np.float32), np.asarray(2, np.uint8)
    per_channel = np.asarray([0.5, 0.25, 1, 2], np.float32)
    zeros = np.asarray([1, 2, 3, 0], np.uint8)
    result: list[Array | None] = [np.asarray(8, np.float32), zero]
    bias = small(4, dtype=np.int32)
    return [
        _sample(
            "QLinearConv",
            version,
            [x, scale, zero, w, scale, zero, *result],
            (3,),
            pads=[0, 1, 2, 0],
        ),
        _sample(
            "QLinearConv",
            version,
            [x, scale, zero, w, per_channel, zeros, *result, bias],
            (1, 2, 3, 4, 5, 6, 7, 8),
            strides=[2, 1],
            kernel_shape=[3, 2],
        ),
        replace(
            _sample(
                "QLinearConv",
                version,
                [x, scale, zero, w[..., :1, :1], per_channel, zeros, *result, bias],
                (1, 2, 3, 4, 5, 6, 7, 8),
            ),
            admits=11,
        ),
    ]


SAMPLES: list[Sample] = [
    *(sample for v in versions("Conv") for sample in _convs(v)),
    *(sample for v in versions("Conv") for sample in _pointwise(v)),
    *(sample for v in versions("ConvTranspose") for sample in _transposed(v)),
    *(sample for v in versions("ConvInteger") for sample in _integer(v)),
    *(sample for v in versions("QLinearConv") for sample in _quantised(v)),
]
