"""Samples for `relayout.ops.views`."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.samples.sample import Array, Sample, counting, ints, versions

CONSTANT = frozenset({1})


def _with_axes(op_type: str, version: int, x: Array, *axes: int) -> Sample:
    """The axes are an attribute before opset 13 and an operand from there on."""
    note = f"axes={list(axes)}"
    if version < 13:
        # The reference evaluator takes only ascending axes here.
        return Sample(op_type, version, [x], {"axes": axes}, note=note, runtime="ort")
    return Sample(op_type, version, [x, ints(*axes)], constants=CONSTANT, note=note)


def _squeezes(version: int) -> list[Sample]:
    return [
        _with_axes("Squeeze", version, counting(2, 1, 3, 1), 3, 1),
        _with_axes("Squeeze", version, counting(1, 2, 1, 3), 0),
        *([_with_axes("Squeeze", version, counting(2, 3, 1), -1)] if version >= 11 else []),
        Sample("Squeeze", version, [counting(1, 2, 1, 3)], note="all"),
        Sample("Squeeze", version, [counting(2, 3)], note="none"),
        Sample("Squeeze", version, [counting(1, 1, 1)], note="to-scalar"),
    ]


def _unsqueezes(version: int) -> list[Sample]:
    return [
        _with_axes("Unsqueeze", version, counting(2, 3, 4), 0),
        _with_axes("Unsqueeze", version, counting(2, 3, 4), 4, 1),
        *([_with_axes("Unsqueeze", version, counting(2, 3, 4), -1, -3)] if version >= 11 else []),
    ]


def _flattens(version: int) -> list[Sample]:
    def sample(admits: int | None, x: Array, **attributes: int) -> Sample:
        return Sample("Flatten", version, [x], attributes, admits=admits, note=str(attributes))

    return [
        sample(1, counting(2, 3, 4, 5)),
        sample(0, counting(2, 3, 4), axis=0),
        sample(0, counting(2, 3, 4), axis=3),
        sample(1, counting(2, 3, 4, 5), axis=2),
        sample(None, counting(2, 3)),
        sample(2, counting(1, 2, 3), axis=1),
        sample(None, counting(4, 3, 1, 1), axis=1),
        *([sample(1, counting(2, 3, 4), axis=-1)] if version >= 11 else []),
    ]


def _reshape(
    version: int, x: Array, target: Array, admits: int | None, **attributes: int
) -> Sample:
    note = f"to{target.tolist()}"
    return Sample("Reshape", version, [x, target], attributes, CONSTANT, admits=admits, note=note)


def _reshapes(version: int) -> list[Sample]:
    return [
        _reshape(version, counting(2, 3, 4, 5), ints(2, 12, 5), 5),
        _reshape(version, counting(2, 3, 4, 5), ints(0, 0, -1), 5),
        _reshape(version, counting(2, 3, 20), ints(0, -1, 4, 5), None),
        _reshape(version, counting(2, 6, 10), ints(2, 4, 15), 1),
        _reshape(version, counting(4, 6), ints(2, 2, 3, 2), None),
        _reshape(version, counting(2, 3, 1, 1), ints(2, 3), None),
        _reshape(version, counting(2, 3, 4), ints(2, 1, 3, 4, 1), None),
        _reshape(version, counting(2, 1, 3, 4), ints(1, 2, 3, 4), None),
        _reshape(version, counting(2, 3, 4), ints(-1), 0),
        Sample("Reshape", version, [counting(2, 3, 4), ints(6, 4)], admits=0, note="run-time"),
    ]


def _shape_bounds(version: int) -> list[Sample]:
    if version < 15:
        return [Sample("Shape", version, [counting(2, 3, 4, 5)])]
    bounds: list[dict[str, Any]] = [
        {},
        {"start": 1, "end": 3},
        {"start": -2},
        {"end": -1},
        {"start": -9, "end": 9},
        {"start": 3, "end": 1},
    ]
    return [Sample("Shape", version, [counting(2, 3, 4, 5)], b, note=str(b)) for b in bounds]


def _transposes(version: int) -> list[Sample]:
    return [
        Sample("Transpose", version, [counting(2, 3, 4, 5)], {"perm": [0, 2, 3, 1]}),
        Sample("Transpose", version, [counting(2, 3, 4)], {"perm": [1, 2, 0]}),
        Sample("Transpose", version, [counting(2, 3, 4)], note="reversed"),
        Sample("Transpose", version, [counting(2, 3, 4, 5, 2)], {"perm": [4, 0, 3, 1, 2]}),
    ]


SAMPLES: list[Sample] = [
    *(sample for v in versions("Transpose") for sample in _transposes(v)),
    *(sample for v in versions("Shape") for sample in _shape_bounds(v)),
    *(Sample("Size", v, [counting(2, 3, 4)]) for v in versions("Size")),
    *(sample for v in versions("Squeeze") for sample in _squeezes(v)),
    *(sample for v in versions("Unsqueeze") for sample in _unsqueezes(v)),
    *(sample for v in versions("Flatten") for sample in _flattens(v)),
    *(sample for v in versions("Reshape") for sample in _reshapes(v)),
    _reshape(14, counting(2, 3, 4, 5), ints(2, 12, 5), 5, allowzero=1),
    _reshape(14, np.zeros((2, 0, 4), np.float32), ints(0, 2, 4), 0, allowzero=1),
]
