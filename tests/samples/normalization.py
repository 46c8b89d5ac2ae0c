"""Samples for `relayout.ops.normalization`."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.samples.sample import Array, Sample, small, unit, versions

X = unit(2, 3, 4, 5)
FIXING_ONE, FIXING_TWO = 5, 1
"""The orders of four axes that leave axis 1, or axes 0 and 1, in place."""


def _parameters(count: int, *shape: int) -> list[Array]:
    """No two of them alike, so that one in the place of another shows."""
    return [unit(*shape) + np.float32(index / 2) for index in range(count)]


def _batch(version: int) -> list[Sample]:
    """In onnxruntime before 14, because the reference evaluator takes it for training."""
    parameters = _parameters(4, 3)
    known = frozenset({1, 2, 3, 4})

    def sample(x: Array, constants: frozenset[int], *types: Any, **attributes: Any) -> Sample:
        dtype = types[0] if types else np.float32
        return Sample(
            "BatchNormalization",
            version,
            [operand.astype(dtype) for operand in (x, *parameters)],
            attributes,
            constants,
            admits=FIXING_ONE if dtype == np.float16 else None,
            note=f"{attributes or ''}{sorted(constants)}{np.dtype(dtype)}",
            runtime="ort" if version < 14 else "reference",
            tolerance=1e-5,
        )

    return [
        sample(X, known),
        sample(X, frozenset()),
        sample(X, frozenset({1, 2}), epsilon=0.25),
        sample(X, known, np.float64, epsilon=0.25),
        sample(X, known, np.float16),
        sample(unit(2, 3, 5), known),
        sample(unit(2, 3), frozenset()),
        *([sample(X, frozenset(), training_mode=0)] if version >= 14 else []),
    ]


def _vanishing_variance() -> Sample:
    """A factor without bound leaves nothing to compute ahead."""
    parameters = [*_parameters(3, 3), np.zeros(3, np.float32)]
    return Sample(
        "BatchNormalization",
        15,
        [X, *parameters],
        {"epsilon": 0.0},
        frozenset({1, 2, 3, 4}),
        admits=FIXING_ONE,
        note="no-variance",
        runtime="ort",
        tolerance=1e-5,
    )


def _training() -> Sample:
    return Sample(
        "BatchNormalization",
        15,
        [X, *_parameters(4, 3)],
        {"training_mode": 1},
        outputs=3,
        admits=0,
        note="training",
        tolerance=1e-5,
    )


def _instance(version: int) -> list[Sample]:
    def sample(*spatial: int, constants: frozenset[int] = frozenset(), **attributes: Any) -> Sample:
        return Sample(
            "InstanceNormalization",
            version,
            [unit(2, 3, *spatial), *_parameters(2, 3)],
            attributes,
            constants,
            note="constant" if constants else "",
            tolerance=1e-5,
        )

    return [
        sample(4),
        sample(4, 5),
        sample(4, 5, constants=frozenset({1, 2}), epsilon=0.25),
        sample(4, 5, 2),
    ]


def _stepwise_at_18() -> list[Sample]:
    """The version from which the axes of a mean are an operand."""
    half = [x.astype(np.float16) for x in (X, *_parameters(2, 3))]
    return [
        *_instance(18),
        Sample("InstanceNormalization", 18, half, admits=FIXING_TWO, note="half", tolerance=1e-2),
        *_trailing("LayerNormalization", 18),
    ]


def _group(version: int) -> Sample:
    x, scale, bias = unit(2, 6, 4, 5), *_parameters(2, 6)
    return Sample(
        "GroupNormalization",
        version,
        [x, scale, bias],
        {"num_groups": 3},
        admits=FIXING_TWO,
        tolerance=1e-5,
    )


def _trailing(op_type: str, version: int) -> list[Sample]:
    """Layer and root-mean-square normalisation; only the first has a bias."""

    def sample(admits: int, axis: int, *shapes: tuple[int, ...], constant: bool) -> Sample:
        used = shapes[: 2 if op_type == "LayerNormalization" else 1]
        parameters = [
            np.asarray(unit(*shape) + np.float32(index)) for index, shape in enumerate(used)
        ]
        return Sample(
            op_type,
            version,
            [X, *parameters],
            {"axis": axis},
            frozenset({1, 2}) if constant else frozenset(),
            admits=admits,
            note=f"axis={axis}{'-constant' if constant else ''}",
            tolerance=1e-5,
        )

    return [
        sample(5, -1, (5,), (5,), constant=True),
        sample(5, 3, (5,), (5,), constant=False),
        sample(3, 2, (4, 5), (4, 5), constant=True),
        sample(3, -2, (4, 5), (4, 5), constant=False),
        sample(5, 1, (3, 4, 5), (3, 4, 5), constant=False),
        sample(23, 0, (2, 3, 4, 5), (2, 3, 4, 5), constant=False),
        sample(1, 2, (5,), (5,), constant=False),
        sample(0, 1, (5,), (5,), constant=True),
        sample(3, 2, (4, 5), constant=False),
        sample(0, 1, (3, 1, 5), (1, 5), constant=False),
        sample(3, 2, (), (4, 1), constant=False),
    ]


def _layer_statistics() -> Sample:
    return Sample(
        "LayerNormalization",
        17,
        [X, *_parameters(2, 4, 5)],
        {"axis": 2},
        outputs=3,
        admits=3,
        note="statistics",
        tolerance=1e-5,
    )


def _local_response(version: int) -> Sample:
    """In onnxruntime, because the reference evaluator takes the batch for the channels."""
    return Sample(
        "LRN",
        version,
        [unit(2, 7, 4, 5)],
        {"size": 3, "alpha": 0.5},
        admits=FIXING_ONE,
        runtime="ort",
        tolerance=1e-5,
    )


def _mean_variance(version: int) -> list[Sample]:
    op_type = "MeanVarianceNormalization"
    return [
        Sample(op_type, version, [X], tolerance=1e-5),
        Sample(op_type, version, [X], {"axes": [3, 1]}, note="axes", tolerance=1e-5),
        Sample(op_type, version, [small(2, 3, 4)], {"axes": [-1]}, note="-1", tolerance=1e-5),
        Sample(op_type, version, [small(2, 3, 4)], admits=0, note="short", tolerance=1e-5),
    ]


SAMPLES: list[Sample] = [
    *(sample for v in versions("BatchNormalization") for sample in _batch(v)),
    _training(),
    _vanishing_variance(),
    *(sample for v in versions("InstanceNormalization") for sample in _instance(v)),
    *(_group(v) for v in versions("GroupNormalization")),
    *(
        sample
        for v in versions("LayerNormalization")
        for sample in _trailing("LayerNormalization", v)
    ),
    _layer_statistics(),
    *_stepwise_at_18(),
    *(sample for v in versions("RMSNormalization") for sample in _trailing("RMSNormalization", v)),
    *(_local_response(v) for v in versions("LRN")),
    *(sample for v in versions("MeanVarianceNormalization") for sample in _mean_variance(v)),
]
