"""Questions about a model as it was given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from relayout.graph.io.sources import ModelSource
from relayout.infer.looks import Direction, Look, look_of, walk_of
from relayout.ops.measure import Measure
from relayout.optimizer.conversion import converted
from relayout.optimizer.describe import (
    attention_notes,
    layouts_record,
    model_record,
)
from relayout.optimizer.optimize import optimize
from relayout.optimizer.prepare import opened, prepare
from relayout.report.layouts import LayoutsRecord
from relayout.report.records import ModelRecord
from relayout.targets.target import ONNX, Target, target_of


def inspect(source: ModelSource, *, dims: Mapping[str, int] | None = None) -> ModelRecord:
    """The interface, the operators and the Transposes of a model."""
    prepared = prepare(opened(source), ONNX, dims or {})
    # With the shapes that are learned before a choice, so that figures are those of `optimize`.
    record = model_record(prepared.informed, dims or {})
    if not record.transposes:
        return record
    return replace(record, notices=(*record.notices, *attention_notes(prepared.spelt_out)))


def infer_layouts(
    source: ModelSource,
    *,
    look: str = Look.BEFORE.value,
    walk: str = Direction.FORWARDS.value,
    target: str | Target | None = None,
) -> LayoutsRecord:
    """The layout of every tensor, inferred from the operators that fix one.

    `look` is which known operator decides about what a Reshape or a similar operator writes, if no
    consumer fixes it: the nearest one "before" it, the nearest one "after" it, or the "nearest" of
    both. `walk` is the pass in which it does: "forwards", or "backwards", for what the Reshape
    reads. With a `target`, what each tensor becomes if the model is optimised for it is reported
    too.
    """
    given = opened(source)
    record = layouts_record(given, look_of(look), walk_of(walk))
    if target is None:
        return record
    # What came through a pipe is gone there.
    again = source if given.data is None else given.data
    result = optimize(again, target=target, verify=False)
    return converted(record, layouts_record(opened(result.model)), target_of(target).name)


def count(source: ModelSource, *, dims: Mapping[str, int] | None = None) -> Measure:
    """How many Transposes a model has, what they move, and how many nodes there are."""
    return prepare(opened(source), ONNX, dims or {}).before
