"""The declared samples as nodes of larger graphs: which fit an opset, and what they may be fed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from relayout.graph.read import schema_of
from relayout.ops.registry import FACTS
from tests.samples import (
    ALL,
    axis,
    broadcasting,
    elementwise,
    indexing,
    movement,
    reduction,
    views,
)
from tests.samples.sample import Sample


@dataclass(frozen=True, slots=True)
class Setting:
    """An opset and the runtime that computes what is right."""

    opset: int
    runtime: str


SETTINGS = (
    Setting(13, "reference"),
    Setting(17, "ort"),
    Setting(21, "reference"),
    Setting(9, "ort"),
    Setting(17, "reference"),
    Setting(28, "reference"),
    Setting(22, "ort"),
)


def _op_types(*families: list[Sample]) -> frozenset[str]:
    return frozenset(sample.op_type for family in families for sample in family)


JOINING = _op_types(broadcasting.SAMPLES) - {"Expand", "Pow"} | {"Concat", "MatMul"}
"""Operators all of whose operands may be results of other nodes."""

FLEXIBLE = _op_types(
    axis.SAMPLES,
    broadcasting.SAMPLES,
    elementwise.SAMPLES,
    indexing.SAMPLES,
    movement.SAMPLES,
    reduction.SAMPLES,
    views.SAMPLES,
)
"""Operators whose data operand may have other lengths than the sample's, where that is valid.

Elsewhere the evaluators broadcast lengths that the standard forbids.
"""

SECLUDED = frozenset({"Acosh", "CumProd", "Det", "OneHot", "Pow", "ReduceProd"})
"""Operators that get only their own data: what other nodes give overflows or is out of range."""

SMOOTH = frozenset(
    (
        *("Add", "AveragePool", "BatchNormalization", "Clip", "Concat", "Conv", "DepthToSpace"),
        *("Expand", "Flatten", "Gather", "GlobalAveragePool", "Identity", "LeakyRelu", "MatMul"),
        *("Max", "MaxPool", "Mean", "Min", "Neg", "Pad", "PRelu", "ReduceMax", "ReduceMean"),
        *("ReduceMin", "ReduceSum", "Relu", "Reshape", "Sigmoid", "Slice", "Softmax"),
        *("SpaceToDepth", "Split", "Squeeze", "Sub", "Sum", "Tanh", "Tile", "Transpose", "Trilu"),
        *("Unsqueeze", "Where"),
    )
)
"""Operators that a rounding error passes through without growing into another answer."""


@cache
def samples_at(setting: Setting) -> dict[str, list[Sample]]:
    """The samples of the standard domain that hold at an opset, by operator."""
    found: dict[str, list[Sample]] = {}
    for sample in ALL:
        if _holds(sample, setting):
            found.setdefault(sample.op_type, []).append(sample)
    return found


def rules() -> frozenset[str]:
    """The operators of the standard domain that run in other orders."""
    return frozenset(
        op_type
        for (domain, op_type), facts in FACTS.items()
        if not domain and not facts.rule.barrier
    )


def _holds(sample: Sample, setting: Setting) -> bool:
    if sample.domain or sample.note == "training":
        return False
    runs = _is_for_reference(sample) if setting.runtime == "reference" else _is_for_ort(sample)
    if not runs:
        return False
    return _since(sample, setting.opset) == _since(sample, sample.version)


def _is_for_reference(sample: Sample) -> bool:
    """The reference evaluator takes a result without a name for operands that are left out."""
    return sample.runtime == "reference" and not sample.unused


def _is_for_ort(sample: Sample) -> bool:
    """ONNX Runtime dies of a Split that leaves a result out, and cannot judge the others.

    It resizes only some axes and wants the time first, so it may not run what a node became.
    """
    leaves_part_out = sample.op_type == "Split" and bool(sample.unused)
    return not leaves_part_out and sample.op_type not in {"GRU", "LSTM", "Resize", "RNN"}


def _since(sample: Sample, opset: int) -> int:
    schema = schema_of(sample.op_type, opset, sample.domain)
    return 0 if schema is None or schema.deprecated else schema.since_version
