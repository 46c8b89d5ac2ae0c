"""Samples of operators that single out one axis and keep the rank."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tests.samples.elementwise import signed
from tests.samples.sample import Sample, counting, ints, small, versions

if TYPE_CHECKING:
    from collections.abc import Iterator

_SOFTMAX_FAMILY = ("Hardmax", "LogSoftmax", "Softmax")


def _single_axis_softmax() -> Iterator[Sample]:
    for op_type in _SOFTMAX_FAMILY:
        for attributes in ({}, {"axis": 1}, {"axis": -3}, {"axis": 0}):
            note = f"axis{attributes.get('axis', '')}"
            x = signed(2, 3, 4, 5)
            yield Sample(op_type, 13, [x], attributes, note=note, tolerance=1e-6)
        yield Sample(op_type, 13, [signed(3, 3)], tolerance=1e-6)
        yield Sample(op_type, 13, [signed(2, 3, 4, 5, 6)], {"axis": 2}, tolerance=1e-6)
    yield Sample("Hardmax", 13, [small(3, 3, 3, 3)], {"axis": 1}, note="ties")


def _trailing_axes_softmax() -> Iterator[Sample]:
    """Of the 23 orders, those that keep the trailing axes together; for Hardmax, in place."""
    cases: list[tuple[str, dict[str, int], int, int, int]] = [
        ("default", {}, 5, 0, 7),
        ("axis0", {"axis": 0}, 23, 0, 7),
        ("axis2", {"axis": 2}, 3, 1, 7),
        ("axis3", {"axis": 3}, 5, 5, 7),
        ("axis-2", {"axis": -2}, 3, 1, 11),
    ]
    for op_type in _SOFTMAX_FAMILY:
        for note, attributes, together, in_place, since in cases:
            admits = in_place if op_type == "Hardmax" else together
            common: dict[str, Any] = {"admits": admits, "runtime": "ort", "tolerance": 1e-6}
            for version in sorted({since, 11}):
                x = signed(2, 3, 4, 5)
                yield Sample(op_type, version, [x], attributes, note=note, **common)
    ties = small(3, 3, 3, 3)
    yield Sample("Hardmax", 11, [ties], {"axis": 2}, note="ties", admits=1, runtime="ort")


def _joins() -> Iterator[Sample]:
    for version in versions("Concat"):
        operands = [counting(2, 3, 4, 5), counting(2, 1, 4, 5), small(2, 2, 4, 5)]
        yield Sample("Concat", version, operands, {"axis": 1})
        constants = frozenset({1})
        yield Sample("Concat", version, operands, {"axis": 1}, constants, note="const")
        yield Sample("Concat", version, [counting(2, 3)], {"axis": 0})
    alike = [counting(3, 3, 3), small(3, 3, 3)]
    yield Sample("Concat", 13, alike, {"axis": -1}, note="alike")
    longer = [counting(2, 3, 4, 5, 6), counting(2, 3, 4, 1, 6)]
    yield Sample("Concat", 11, longer, {"axis": -2})


def _splits() -> Iterator[Sample]:
    x, sizes = counting(2, 3, 4, 6), ints(1, 3, 2)
    for version in (7, 11):
        yield Sample("Split", version, [x], outputs=2, note="default")
        yield Sample("Split", version, [x], {"axis": 3}, outputs=3, note="equal")
        attributes = {"axis": 3, "split": [1, 3, 2]}
        yield Sample("Split", version, [x], attributes, outputs=3, note="sizes")
    yield Sample("Split", 11, [x], {"axis": -2}, outputs=2, note="negative")
    for version in (13, 18):
        for constants in (frozenset[int](), frozenset({1})):
            note = "const" if constants else "at-run-time"
            yield Sample(
                "Split", version, [x, sizes], {"axis": -1}, constants, outputs=3, note=note
            )
    yield Sample("Split", 13, [x], {"axis": 2}, outputs=2, note="equal")
    yield Sample("Split", 18, [x], {"axis": 2, "num_outputs": 3}, outputs=3, note="uneven")
    unused = frozenset({1})
    yield Sample("Split", 13, [x, sizes], {"axis": 3}, outputs=3, unused=unused, note="unused")


def _cumulations() -> Iterator[Sample]:
    x = small(2, 3, 4, 5)
    known = frozenset({1})
    for op_type in ("CumProd", "CumSum"):
        for version in versions(op_type):
            for axis in (np.asarray(1), np.asarray(-1, np.int32)):
                yield Sample(op_type, version, [x, axis], constants=known, note=f"axis{axis}")
            flags = {"exclusive": 1, "reverse": 1}
            yield Sample(op_type, version, [x, np.asarray(2)], flags, known, note="flags")
            for axis in (np.asarray(2), np.asarray(-1, np.int32)):
                yield Sample(op_type, version, [x, axis], note=f"axis{axis}-at-run-time")
    yield Sample("CumSum", 14, [small(3, 3, 3), np.asarray(1)], constants=known, note="alike")
    yield Sample("CumSum", 11, [small(2, 3, 4), ints(-2)], constants=known, runtime="ort")


def _norms() -> Iterator[Sample]:
    x = signed(2, 3, 4, 5)
    for version in versions("LpNormalization"):
        for attributes in ({}, {"axis": 1, "p": 1}, {"axis": -4}):
            note = f"axis{attributes.get('axis', '')}"
            yield Sample("LpNormalization", version, [x], attributes, note=note, tolerance=1e-6)


def _tops() -> Iterator[Sample]:
    x, tied = counting(2, 3, 4, 5), small(3, 3, 3, 3)
    yield Sample("TopK", 7, [x], {"k": 2}, outputs=2)
    yield Sample("TopK", 7, [x], {"k": 2, "axis": 1}, outputs=2, note="axis")
    for version in versions("TopK")[1:]:
        for attributes in ({}, {"axis": 2}):
            note = f"axis{attributes.get('axis', '')}"
            yield Sample("TopK", version, [x, ints(2)], attributes, outputs=2, note=note)
        known = frozenset({1})
        yield Sample("TopK", version, [x, ints(3)], {"axis": 1}, known, outputs=2, note="const")
    smallest = {"axis": -3, "largest": 0}
    yield Sample("TopK", 11, [tied, ints(2)], smallest, outputs=2, note="ties", runtime="ort")
    yield Sample("TopK", 24, [x, ints(2)], outputs=2, unused=frozenset({0}), note="indices")


def _selections() -> Iterator[Sample]:
    x, condition = counting(2, 3, 4, 5), np.asarray([True, False, True])
    for version in versions("Compress"):
        yield Sample("Compress", version, [x, condition], {"axis": 2}, note="shorter")
        yield Sample("Compress", version, [x, condition], {"axis": 1}, frozenset({1}), note="const")
        yield Sample("Compress", version, [x, condition], admits=0, note="flat")
    yield Sample("Compress", 11, [counting(3, 3, 3), condition], {"axis": -1}, note="alike")


def _reversals() -> Iterator[Sample]:
    """Four orders keep the first two axes of four; only ORT minds if an order does not."""
    x = counting(3, 2, 4, 5)
    yield Sample("ReverseSequence", 10, [x, ints(3, 1)], admits=3, runtime="ort", note="ort")
    for version in versions("ReverseSequence"):
        yield Sample("ReverseSequence", version, [x, ints(3, 1)], admits=3)
        axes = {"batch_axis": 0, "time_axis": 1}
        yield Sample("ReverseSequence", version, [x, ints(2, 1, 2)], axes, admits=3, note="swapped")
        yield Sample("ReverseSequence", version, [counting(3, 3), ints(1, 3, 2)])


SAMPLES = [
    *_single_axis_softmax(),
    *_trailing_axes_softmax(),
    *_joins(),
    *_splits(),
    *_cumulations(),
    *_norms(),
    *_tops(),
    *_selections(),
    *_reversals(),
]
