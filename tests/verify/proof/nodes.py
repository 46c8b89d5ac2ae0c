"""Samples of operators that the prover follows and that have no rules of orders, or other forms."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import onnx

from tests.samples.sample import Array, Sample, counting, ints, small, unit

CONTRIB = "com.microsoft"
Operands = Sequence[Array | None]


def drawn(*shape: int) -> Array:
    return np.random.default_rng(int(np.prod(shape))).normal(0, 1, shape).astype(np.float32)


def _bytes(*shape: int) -> Array:
    return counting(*shape, dtype=np.uint8)


def _step(scale: float, zero: int) -> list[Array]:
    return [np.asarray(scale, np.float32), np.asarray(zero, np.uint8)]


def _contrib(op_type: str, inputs: Operands, constants: frozenset[int], **named: Any) -> Sample:
    note = f"{named}".replace(" ", "")
    return Sample(op_type, 1, inputs, named, constants, domain=CONTRIB, note=note, runtime="ort")


def _microsoft(op_type: str, *inputs: Array | None, **named: Any) -> Sample:
    return _contrib(op_type, inputs, frozenset(), **named)


def _attentions() -> Iterator[Sample]:
    """The operator of the standard: with heads apart or joined, in groups, masked, after a past."""
    apart = [drawn(2, 2, 3, 4), drawn(2, 2, 5, 4) + 1, drawn(2, 2, 5, 4) - 1]
    joined = [drawn(2, 3, 8), drawn(2, 5, 8) + 1, drawn(2, 5, 8) - 1]
    heads = {"q_num_heads": 2, "kv_num_heads": 2}
    grouped = [drawn(2, 4, 3, 4), drawn(2, 2, 5, 4) + 1, drawn(2, 2, 5, 4) - 1]
    past = [drawn(2, 2, 1, 4), drawn(2, 2, 1, 4) * 2]
    shown = np.tril(np.ones((3, 5), bool), 1)
    yield Sample("Attention", 23, apart, {"scale": 0.5})
    yield Sample("Attention", 23, apart, {"is_causal": 1}, note="causal")
    yield Sample("Attention", 23, [*apart, drawn(3, 5)], note="bias")
    yield Sample("Attention", 23, [*apart, shown], constants=frozenset({3}), note="mask")
    yield Sample("Attention", 23, joined, heads, note="joined")
    yield Sample("Attention", 23, grouped, note="groups")
    yield Sample("Attention", 23, [*apart, None, *past], outputs=3, note="past")
    yield Sample("Attention", 23, [*apart, None, *past], {"is_causal": 1}, outputs=3, note="both")


def _multi_heads() -> Iterator[Sample]:
    joined = [drawn(2, 3, 8), drawn(2, 5, 8) + 1, drawn(2, 5, 8) - 1]
    apart = [drawn(2, 2, 5, 4) + 1, drawn(2, 2, 5, 4) - 1]
    mask = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 0]], np.int32)
    alike = [drawn(2, 3, 8), drawn(2, 3, 8) + 1, drawn(2, 3, 8) - 1]
    name = "MultiHeadAttention"
    yield _microsoft(name, *joined, drawn(24), num_heads=2, scale=0.5)
    yield _microsoft(name, *joined, None, mask, num_heads=2, mask_filter_value=-3.0)
    scores = drawn(2, 2, 3, 3)
    yield _microsoft(name, *alike, None, None, scores, num_heads=2, unidirectional=1)
    yield _microsoft(name, joined[0], *apart, drawn(24), num_heads=2)
    yield _microsoft("Attention", drawn(2, 3, 6), drawn(6, 24), drawn(24), num_heads=2)
    masked: Operands = [drawn(2, 3, 6), drawn(6, 24), drawn(24), mask[:, :3] * 1]
    yield _microsoft("Attention", *masked, num_heads=2, scale=0.5, mask_filter_value=-2.0)
    biased: Operands = [*masked[:3], None, None, drawn(2, 2, 3, 3)]
    yield _microsoft("Attention", *biased, num_heads=2, unidirectional=1)


def _products() -> Iterator[Sample]:
    left, right = drawn(3, 3, 3), drawn(3, 3, 3) + 1
    for name in ("transA", "transB", "transBatchA", "transBatchB"):
        yield _microsoft("FusedMatMul", left, right, **{name: 1})
    yield _microsoft("FusedMatMul", drawn(3, 2, 4), drawn(3, 4, 6), alpha=2.0)
    square = [drawn(4, 4), drawn(4, 4) + 1, drawn(4)]
    yield _microsoft("FusedGemm", *square, activation="Relu", alpha=0.5, beta=2.0)
    slope = {"activation": "LeakyRelu", "activation_alpha": 0.25}
    yield _microsoft("FusedGemm", *square, **slope, transA=1)


def _quantised() -> Iterator[Sample]:
    data, result = _step(0.02, 3), _step(0.5, 7)
    mean = _step(0.031, 5)  # no mean of bytes lies between two of its steps
    factors = [_bytes(3, 4), *data, _bytes(4, 5), *_step(0.03, 5), *result]
    held = frozenset({1, 2, 4, 5, 6, 7})
    yield Sample("QLinearMatMul", 21, factors, {}, held, note="constants", runtime="ort")
    integers = [_bytes(3, 4), _bytes(4, 5), *(one[1] for one in (data, result))]
    held = frozenset({2, 3})
    yield Sample("MatMulInteger", 10, integers, {}, held, note="constants", runtime="ort")
    weight = [_bytes(4, 3, 2, 3), *_step(0.03, 5)]
    each = [_bytes(4, 3, 2, 3), unit(4) / 10, np.full(4, 5, np.uint8)]
    scales = frozenset({1, 2, 4, 5, 6, 7})
    added = counting(4, dtype=np.int32)
    for last in (0, 1):
        source = _bytes(2, 5, 6, 3) if last else _bytes(2, 3, 5, 6)
        named: dict[str, Any] = {"channels_last": last, "pads": [0, 1, 1, 0], "strides": [1, 2]}
        for one, held in ((weight, scales), (each, scales | {3})):
            operands = [source, *data, *one, *result, added]
            yield _contrib("QLinearConv", operands, held, **named)
        pool: dict[str, Any] = {"kernel_shape": [2, 3], "pads": [0, 1, 1, 0], **named}
        four = frozenset({1, 2, 3, 4})
        yield _contrib("QLinearAveragePool", [source, *data, *mean], four, **pool)
        whole = {"channels_last": last}
        yield _contrib("QLinearGlobalAveragePool", [source, *data, *data], four, **whole)
    yield _microsoft("NhwcMaxPool", _bytes(2, 5, 6, 3), kernel_shape=[2, 3], strides=[1, 2])
    steps: list[Array] = [np.array([0.5, 1, 2], np.float32), np.array([1, 2, 3], np.uint8)]
    for op_type, kind in (("QuantizeLinear", np.float32), ("DequantizeLinear", np.uint8)):
        yield _microsoft(op_type, counting(2, 3, 4, dtype=kind), *steps, axis=1)
        yield _microsoft(op_type, counting(2, 3, 4, dtype=kind), *_step(0.5, 3))


def _normalisations() -> Iterator[Sample]:
    rows = [drawn(2, 3, 6), drawn(2, 3, 6) + 1]
    numbers = [drawn(6), drawn(6) + 1, drawn(6) - 1]
    yield _microsoft("SkipLayerNormalization", *rows, *numbers, epsilon=0.5)
    yield _microsoft("SkipLayerNormalization", *rows, *numbers[:2])
    yield _microsoft("SkipSimplifiedLayerNormalization", *rows, *numbers[:2], epsilon=0.5)
    with_statistics = [*rows[:1], *numbers[:2]]
    yield Sample("LayerNormalization", 17, with_statistics, outputs=3, runtime="ort")
    yield Sample(
        "SimplifiedLayerNormalization", 17, [rows[0], numbers[0]], {"epsilon": 0.5}, runtime="ort"
    )
    yield _microsoft("BiasGelu", *(rows[0], numbers[0]))
    yield _microsoft("FastGelu", *(rows[0], numbers[0]))
    yield _microsoft("FastGelu", rows[0])


def _neighbours() -> Iterator[Sample]:
    """As many channels as batches: the reference takes one number for the other."""
    named = {"size": 2, "alpha": 0.5, "beta": 0.5, "bias": 2.0}
    yield Sample("LRN", 13, [counting(3, 3, 2, 4)], named, note="even")


def _convolutions() -> Iterator[Sample]:
    window: dict[str, Any] = {"pads": [0, 1, 1, 0], "strides": [1, 2], "activation": "Relu"}
    operands = [drawn(1, 4, 5, 6), drawn(4, 2, 2, 3), drawn(4), drawn(1, 4, 5, 3)]
    yield _microsoft("FusedConv", *operands, group=2, **window)
    slope = {"activation": "LeakyRelu", "activation_params": [0.5]}
    yield _microsoft("FusedConv", *operands[:2], group=2, **slope)


def _pools() -> Iterator[Sample]:
    """Windows over what no window ends with, and paddings that the lengths decide."""
    source = small(1, 2, 7, 8)
    weight = small(3, 2, 3, 2)
    windows: list[dict[str, Any]] = [
        {"strides": [2, 3], "ceil_mode": 1},
        {"strides": [3, 3], "ceil_mode": 1, "pads": [1, 0, 1, 1]},
        {"strides": [2, 3], "auto_pad": "SAME_UPPER"},
        {"strides": [2, 3], "auto_pad": "SAME_LOWER"},
        {"strides": [2, 3], "auto_pad": "VALID"},
    ]
    for window in windows:
        named = {"kernel_shape": [3, 2], **window}
        note = f"{window}".replace(" ", "")
        for op_type in ("MaxPool", "AveragePool", "LpPool"):
            yield Sample(op_type, 22, [source], named, note=note, runtime="ort")
        if "ceil_mode" not in window:
            yield Sample("Conv", 22, [source, weight], named, note=note, runtime="ort")
    yield Sample("MaxPool", 22, [source], {"kernel_shape": [2, 2]}, outputs=2, runtime="ort")


def _sources() -> Iterator[Sample]:
    tensor = onnx.numpy_helper.from_array(np.array([2], np.int64))
    lengths = frozenset({0})
    yield Sample("ConstantOfShape", 21, [ints(2, 3)], {"value": tensor}, lengths)
    yield Sample("ConstantOfShape", 21, [ints(3)], {"value": tensor}, lengths)
    yield Sample("ConstantOfShape", 21, [ints(2, 3)], {}, lengths, note="zeros")
    bounds = [np.array(one, np.int64) for one in (2, 7, 1)]
    yield Sample("Range", 11, bounds, {}, frozenset({0, 1, 2}))
    for mode in ("DCR", "CRD"):
        yield Sample("DepthToSpace", 13, [counting(2, 8, 3, 2)], {"blocksize": 2, "mode": mode})
    yield Sample("SpaceToDepth", 13, [counting(2, 3, 4, 6)], {"blocksize": 2})


SAMPLES: list[Sample] = [
    *_attentions(),
    *_multi_heads(),
    *_products(),
    *_quantised(),
    *_normalisations(),
    *_neighbours(),
    *_convolutions(),
    *_pools(),
    *_sources(),
]
