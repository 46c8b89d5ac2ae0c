"""Questions about a model as it was given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from relayout.graph.io.sources import ModelSource
from relayout.infer.colours import Look, look_of
from relayout.ops.measure import Measure, measure
from relayout.optimizer.describe import (
    attention_notes,
    layouts_record,
    model_record,
)
from relayout.optimizer.pipeline import (
    SpeltOut,
    local_rules,
)
from relayout.optimizer.prepare import opened
from relayout.report.layouts import LayoutsRecord
from relayout.report.records import ModelRecord
from relayout.targets.target import ONNX


def inspect(source: ModelSource, *, dims: Mapping[str, int] | None = None) -> ModelRecord:
    """The interface, the operators and the Transposes of a model."""
    loaded = opened(source)
    record = model_record(loaded, dims or {})
    if not record.transposes:
        return record
    watching = SpeltOut(ONNX)
    local_rules(ONNX).run(loaded.ir, [watching])
    return replace(record, notices=(*record.notices, *attention_notes(watching.reasons)))


def infer_layouts(source: ModelSource, *, look: str = Look.BEFORE.value) -> LayoutsRecord:
    """The layout of every tensor, inferred from the operators that fix one.

    `look` is where the layout of what a Reshape or a similar operator writes is inferred from if no
    consumer fixes it: "before" (the operators before it: it is no longer what came in), "after" or
    "nearest".
    """
    return layouts_record(opened(source), look_of(look))


def count(source: ModelSource, *, dims: Mapping[str, int] | None = None) -> Measure:
    """How many Transposes a model has, what they move, and how many nodes there are."""
    return measure(opened(source).ir, dims)
