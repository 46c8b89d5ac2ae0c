"""Samples for `relayout.ops.quantization`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tests.samples.sample import Array, Sample, counting, versions

if TYPE_CHECKING:
    from collections.abc import Iterator

OPERATORS = ("QuantizeLinear", "DequantizeLinear")


def _sample(
    op_type: str, version: int, scale: Array, attributes: dict[str, Any], note: str, **more: Any
) -> Sample:
    """A tensor of distinct numbers with this scale and zero points that differ like it."""
    kind = np.float32 if op_type == "QuantizeLinear" else np.uint8
    zero = np.asarray(scale * 4).astype(np.uint8)
    operands = [counting(2, 3, 4, 5, dtype=kind), scale, zero]
    has_reference = op_type == "QuantizeLinear" or version >= 19
    runtime = "reference" if has_reference else "ort"
    return Sample(op_type, version, operands, attributes, note=note, runtime=runtime, **more)


def _scales(*shape: int) -> Array:
    return counting(*shape) / 4


def _per_tensor() -> Iterator[Sample]:
    for op_type in OPERATORS:
        for version in versions(op_type):
            yield _sample(op_type, version, np.asarray(np.float32(0.5)), {}, "per tensor")
            yield _sample(op_type, version, _scales(1), {}, "one scale in a vector")
            if version >= 13:
                far = {"axis": 7}
                yield _sample(op_type, version, np.asarray(np.float32(0.5)), far, "axis unused")


def _per_axis() -> Iterator[Sample]:
    for op_type in OPERATORS:
        for version in versions(op_type, oldest=13):
            yield _sample(op_type, version, _scales(3), {}, "default axis")
            yield _sample(op_type, version, _scales(4), {"axis": -2}, "negative axis")
            yield _sample(op_type, version, _scales(2), {"axis": 0}, "first axis")


def _blocked() -> Iterator[Sample]:
    for op_type in OPERATORS:
        for version in versions(op_type, oldest=21):
            attributes = {"axis": 2, "block_size": 2}
            yield _sample(op_type, version, _scales(2, 3, 2, 5), attributes, "blocked")
            attributes = {"axis": -1, "block_size": 3}
            yield _sample(op_type, version, _scales(2, 3, 4, 2), attributes, "short last block")


def _without_zero_point() -> Iterator[Sample]:
    data = counting(2, 3, 4, 5)
    yield Sample("QuantizeLinear", 13, [data, _scales(3)], note="no zero point")
    yield Sample(
        "QuantizeLinear",
        21,
        [data, _scales(2, 3, 2, 5), None],
        {"axis": 2, "block_size": 2, "output_dtype": 3},
        note="blocked, no zero point",
    )
    constants = frozenset({1, 2})
    yield _sample("QuantizeLinear", 21, _scales(5), {"axis": 3}, "constants", constants=constants)
    yield _sample(
        "DequantizeLinear",
        21,
        _scales(2, 3, 2, 5),
        {"axis": 2, "block_size": 2},
        "blocked constants",
        constants=constants,
    )


def _refused() -> Iterator[Sample]:
    for op_type in OPERATORS:
        yield _sample(op_type, 10, _scales(3), {}, "vector before it had an axis", admits=0)


SAMPLES: list[Sample] = [
    *_per_tensor(),
    *_per_axis(),
    *_blocked(),
    *_without_zero_point(),
    *_refused(),
]
