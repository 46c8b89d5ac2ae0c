"""Samples for `relayout.ops.contrib`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from tests.samples.sample import Array, Sample, counting, unit


def _bytes(*shape: int) -> Array:
    return counting(*shape, dtype=np.uint8)


def _scaled(scale: float, zero_point: int) -> list[Array]:
    return [np.asarray(scale, np.float32), np.asarray(zero_point, np.uint8)]


def _sample(op_type: str, inputs: list[Array], admits: int | None = None, **named: Any) -> Sample:
    parameters = frozenset(i for i, x in enumerate(inputs) if x.size == 1)
    return Sample(
        op_type,
        1,
        inputs,
        named,
        parameters,
        domain="com.microsoft",
        admits=admits,
        note=f"{named}".replace(" ", ""),
        runtime="ort",
    )


def _pairs(op_type: str) -> list[Sample]:
    a, b, result = _scaled(0.02, 3), _scaled(0.03, 5), _scaled(0.05, 7)
    return [
        _sample(op_type, [_bytes(2, 3, 4, 5), *a, _bytes(2, 3, 4, 5), *b, *result]),
        _sample(op_type, [_bytes(2, 3, 4, 5), *a, _bytes(4, 5), *b, *result]),
        _sample(op_type, [_bytes(3, 1), *a, _bytes(2, 3, 5), *b, *result]),
    ]


def _unary(op_type: str, **named: Any) -> Sample:
    operands = [_bytes(2, 3, 4, 5), *_scaled(0.02, 3), *_scaled(0.05, 7)]
    return _sample(op_type, operands, **named)


def _concat() -> Sample:
    parts = [_bytes(2, 3, 4), *_scaled(0.02, 3), _bytes(2, 5, 4), *_scaled(0.03, 5)]
    return _sample("QLinearConcat", [*_scaled(0.05, 7), *parts], axis=1)


def _gemms() -> list[Sample]:
    """Scales of one number, and a scale for every column."""
    a, result = _scaled(0.02, 3), _scaled(0.5, 7)
    columns = [np.linspace(0.01, 0.05, 5, dtype=np.float32), _bytes(5)]
    added = counting(5, dtype=np.int32)
    one = Sample(
        "QGemm",
        1,
        [_bytes(3, 4), *a, _bytes(4, 5), *_scaled(0.03, 5), added, *result],
        {},
        frozenset(range(1, 9)),
        domain="com.microsoft",
        admits=0,
        note="one scale",
        runtime="ort",
    )
    each = [_bytes(3, 4), *a, _bytes(5, 4), *columns, added, *result]
    return [one, replace(one, inputs=each, attributes={"transB": 1}, note="a scale a column")]


def _curve(op_type: str, **named: Any) -> Sample:
    return _sample(op_type, [6 * unit(2, 3, 4, 5) - 3], **named)


SAMPLES: list[Sample] = [
    _curve("Gelu"),
    _curve("QuickGelu", alpha=1.0),
    *_gemms(),
    *(sample for op_type in ("QLinearAdd", "QLinearMul") for sample in _pairs(op_type)),
    _unary("QLinearSigmoid"),
    _unary("QLinearLeakyRelu", alpha=0.1),
    _concat(),
    _unary("QLinearSoftmax", axis=-1, opset=13),
    _unary("QLinearSoftmax", axis=2, opset=11, admits=1),
]
