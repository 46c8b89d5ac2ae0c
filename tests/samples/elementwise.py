"""Samples of operators with one data operand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import TensorProto

from relayout.ops.elementwise import UNARY
from tests.samples.sample import Array, Sample, counting, small, unit, versions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SHAPES = ((2, 3, 4, 5), (3, 3))
_OF_OTHER_TYPES = {"BitCast", "BitwiseNot", "Identity", "Not", "RegexFullMatch"}
_ON_UNIT_INTERVAL = {"Acos", "Asin", "Atanh", "Log", "Reciprocal", "Sqrt"}
_WITH_SPECIAL_VALUES = {"IsInf", "IsNaN"}


def signed(*shape: int) -> Array:
    """Values of both signs, no two alike."""
    return 6 * unit(*shape) - 3


def above_one(*shape: int) -> Array:
    return unit(*shape) + 1


def special(*shape: int) -> Array:
    """Infinities of both signs and NaNs, in no regular order."""
    values = np.asarray([np.inf, -np.inf, np.nan, 0, 1], np.float32)
    return values[small(*shape, dtype=np.int64, low=0, high=5)]


def truths(*shape: int) -> Array:
    return small(*shape) > 0


def texts(*shape: int) -> Array:
    return counting(*shape, dtype=np.int64).astype(str).astype(object)


def _data_of(op_type: str) -> Callable[..., Array]:
    if op_type == "Acosh":
        return above_one
    if op_type in _WITH_SPECIAL_VALUES:
        return special
    return unit if op_type in _ON_UNIT_INTERVAL else signed


def _unary() -> Iterator[Sample]:
    for op_type in sorted(name for facts in UNARY for name in facts.op_types):
        if op_type in _OF_OTHER_TYPES:
            continue
        for version in versions(op_type):
            data = _data_of(op_type)
            yield from (Sample(op_type, version, [data(*shape)]) for shape in SHAPES)


def _other_types() -> Iterator[Sample]:
    for version in versions("Not"):
        yield from (Sample("Not", version, [truths(*shape)]) for shape in SHAPES)
    for version in versions("BitwiseNot"):
        yield Sample("BitwiseNot", version, [small(2, 3, 4, 5, dtype=np.int32)])
    for version in versions("BitCast"):
        yield Sample("BitCast", version, [unit(2, 3, 4, 5)], {"to": TensorProto.INT32})
    for version in versions("Identity"):
        yield from (Sample("Identity", version, [counting(*shape)]) for shape in SHAPES)
        yield Sample("Identity", version, [texts(2, 3, 4)], note="text")
    for version in versions("RegexFullMatch"):
        pattern = {"pattern": "[0-9]*[13579]"}
        yield Sample("RegexFullMatch", version, [texts(2, 3, 4, 5)], pattern, runtime="ort")


def _attributes() -> Iterator[Sample]:
    x = signed(2, 3, 4, 5)
    yield Sample("Celu", 28, [x], {"alpha": 2.0}, note="alpha")
    yield Sample("Elu", 22, [x], {"alpha": 2.0}, note="alpha")
    yield Sample("Gelu", 20, [x], {"approximate": "tanh"}, note="tanh")
    yield Sample("HardSigmoid", 22, [x], {"alpha": 0.5, "beta": 0.25}, note="alpha-beta")
    yield Sample("IsInf", 20, [special(2, 3, 4, 5)], {"detect_negative": 0}, note="positive")
    yield Sample("LeakyRelu", 16, [x], {"alpha": 0.5}, note="alpha")
    yield Sample("Shrink", 9, [x], {"lambd": 1.0, "bias": 0.5}, note="lambd-bias")
    yield Sample("Swish", 24, [x], {"alpha": 2.0}, note="alpha")
    yield Sample("ThresholdedRelu", 22, [x], {"alpha": 0.5}, note="alpha")


def _casts() -> Iterator[Sample]:
    x = signed(2, 3, 4, 5)
    for version in versions("Cast"):
        for shape in SHAPES:
            yield Sample("Cast", version, [signed(*shape)], {"to": TensorProto.INT32})
    overflowing = {"to": TensorProto.FLOAT8E5M2, "saturate": 0}
    yield Sample("Cast", 19, [60000 * x], overflowing, note="saturate")
    for version in versions("CastLike"):
        for like in (np.zeros(7, np.int64), np.zeros((5, 4, 3, 2), np.int64)):
            yield Sample("CastLike", version, [x, like])
    yield Sample(
        "CastLike", 15, [x, np.zeros(1, np.float64)], constants=frozenset({1}), note="const"
    )


def _clips() -> Iterator[Sample]:
    x = signed(2, 3, 4, 5)
    for shape in SHAPES:
        yield Sample("Clip", 7, [signed(*shape)], {"min": -1.0, "max": 2.0})
    low, high = np.float32(-1), np.float32(2)
    for version in versions("Clip")[1:]:
        bounds = [np.asarray(low), np.asarray(high)]
        yield Sample("Clip", version, [x, *bounds])
        yield Sample("Clip", version, [x, *bounds], constants=frozenset({1, 2}), note="const")
        yield Sample("Clip", version, [x, None, bounds[1]], note="no-minimum")
        yield Sample("Clip", version, [x], note="no-bounds")


def _dropouts() -> Iterator[Sample]:
    x = signed(2, 3, 4, 5)
    ratio, infer, train = np.asarray(np.float32(0.5)), np.asarray(False), np.asarray(True)
    for version in versions("Dropout"):
        yield Sample("Dropout", version, [x])
        yield Sample("Dropout", version, [x], outputs=2, note="mask")
        yield Sample("Dropout", version, [x], outputs=2, unused=frozenset({1}), note="no mask")
    for version in versions("Dropout")[:2]:
        yield Sample("Dropout", version, [x], {"ratio": 0.25}, note="ratio")
    for version in versions("Dropout")[2:]:
        yield Sample("Dropout", version, [x, ratio], outputs=2, note="ratio-mask")
        modes: list[tuple[str, Array, frozenset[int], int | None]] = [
            ("inference", infer, frozenset({2}), None),
            ("training", train, frozenset({2}), 0),
            ("at-run-time", infer, frozenset(), 0),
        ]
        for note, mode, constants, admits in modes:
            given: dict[str, Any] = {"constants": constants, "admits": admits, "note": note}
            yield Sample("Dropout", version, [x, ratio, mode], outputs=2, **given)


def _longer() -> Iterator[Sample]:
    yield Sample("Relu", 14, [signed(2, 3, 4, 5, 6)])
    yield Sample("Neg", 13, [counting(3, 3, 3, 3)])
    yield Sample("Exp", 13, [signed(1, 4, 1, 3)])


SAMPLES = [
    *_unary(),
    *_other_types(),
    *_attributes(),
    *_casts(),
    *_clips(),
    *_dropouts(),
    *(
        Sample("DynamicQuantizeLinear", version, [signed(2, 3, 4, 5)], outputs=3)
        for version in versions("DynamicQuantizeLinear")
    ),
    *_longer(),
]
