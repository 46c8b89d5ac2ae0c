"""Samples for `relayout.ops.pooling`."""

from __future__ import annotations

from typing import Any

from tests.samples.sample import Array, Sample, counting, unit, versions

SPATIAL_ORDERS = {3: 1, 4: 3, 5: 2}
"""For each rank, how many of the orders tried keep axes 0 and 1 in front, in either order."""
X = counting(2, 3, 7, 8)


def _sample(op_type: str, version: int, x: Array, **named: Any) -> Sample:
    by_reference = op_type != "LpPool" and x.ndim < 5
    return Sample(
        op_type,
        version,
        [x],
        named,
        admits=SPATIAL_ORDERS[x.ndim],
        note=str(named).replace(" ", ""),
        runtime="reference" if by_reference else "ort",
        tolerance=0.0 if op_type == "MaxPool" else 1e-5,
    )


def _pools(op_type: str, version: int) -> list[Sample]:
    return [
        _sample(op_type, version, X, kernel_shape=[3, 2]),
        _sample(op_type, version, X, kernel_shape=[3, 2], strides=[1, 2], pads=[2, 1, 0, 0]),
        _sample(op_type, version, X, kernel_shape=[2, 3], auto_pad="SAME_LOWER"),
        _sample(op_type, version, counting(2, 3, 7), kernel_shape=[3], strides=[2]),
        _sample(
            op_type,
            version,
            counting(2, 3, 4, 5, 6),
            kernel_shape=[1, 3, 2],
            pads=[0, 1, 0, 0, 2, 1],
        ),
    ]


def _max_pools(version: int) -> list[Sample]:
    dilated = {"dilations": [2, 3], "ceil_mode": 1}
    pools = _pools("MaxPool", version)
    if version >= 10:
        pools.append(_sample("MaxPool", version, X, kernel_shape=[3, 2], **dilated))
    if version >= 8:
        pools += [_with_indices(version, 0, used=True), _with_indices(version, 3, used=False)]
    return pools


def _with_indices(version: int, admits: int, *, used: bool) -> Sample:
    return Sample(
        "MaxPool",
        version,
        [X],
        {"kernel_shape": [3, 2]},
        outputs=2,
        admits=admits,
        unused=frozenset() if used else frozenset({1}),
        note="indices" if used else "no-indices",
    )


def _average_pools(version: int) -> list[Sample]:
    counted = {"count_include_pad": 1, "pads": [1, 0, 2, 1]}
    pools = _pools("AveragePool", version)
    pools.append(_sample("AveragePool", version, X, kernel_shape=[3, 2], **counted))
    if version >= 19:
        pools.append(_sample("AveragePool", version, X, kernel_shape=[3, 2], dilations=[2, 3]))
    return pools


def _lp_pools(version: int) -> list[Sample]:
    pools = _pools("LpPool", version)
    pools.append(_sample("LpPool", version, X, kernel_shape=[3, 2], p=1))
    if version >= 18:
        pools.append(_sample("LpPool", version, X, kernel_shape=[3, 2], dilations=[2, 3]))
    return pools


def _global_pools(op_type: str, version: int) -> list[Sample]:
    """In onnxruntime, because the reference evaluator's GlobalMaxPool knows rank 4 only."""
    return [
        Sample(op_type, version, [unit(*shape)], runtime="ort", tolerance=1e-5)
        for shape in ((2, 3, 4), (2, 3, 4, 5), (2, 3, 4, 5, 2))
    ]


def _global_lp_pools(version: int) -> list[Sample]:
    x = unit(2, 3, 4, 5)
    return [
        Sample(
            "GlobalLpPool",
            version,
            [x],
            attributes,
            admits=admits,
            note=str(attributes),
            runtime="ort",
            tolerance=1e-5,
        )
        for attributes, admits in (({}, None), ({"p": 1}, None), ({"p": 3}, 3))
    ]


SAMPLES: list[Sample] = [
    *(sample for v in versions("MaxPool") for sample in _max_pools(v)),
    *(sample for v in versions("AveragePool") for sample in _average_pools(v)),
    *(sample for v in versions("LpPool") for sample in _lp_pools(v)),
    *(
        sample
        for op_type in ("GlobalAveragePool", "GlobalMaxPool")
        for v in versions(op_type)
        for sample in _global_pools(op_type, v)
    ),
    # No runtime at hand has GlobalLpPool 22; 18 is the first opset of the other form of reductions.
    *(sample for v in (7, 18) for sample in _global_lp_pools(v)),
]
