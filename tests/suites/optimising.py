"""A model through the whole pipeline, with what every optimised model must satisfy."""

from __future__ import annotations

from dataclasses import dataclass

import onnx

from relayout.assign.choose import ChooseLayouts
from relayout.assign.terms import Terms
from relayout.graph.invariants import Signature
from relayout.graph.io.load import load
from relayout.graph.io.save import to_proto
from relayout.ops.measure import Measure, Objective, measure
from relayout.optimizer.pipeline import Checking, layouts, learn_shapes
from relayout.targets.target import ONNX

NOTHING = Measure(0, 0, 0)


@dataclass(frozen=True, slots=True)
class Optimised:
    model: onnx.ModelProto
    before: Measure
    after: Measure
    notes: tuple[str, ...] = ()
    """Why the choice of layouts may not be the best there is."""


def optimised(
    model: onnx.ModelProto, objective: Objective, *, by_factors: bool = False
) -> Optimised:
    """The model as the passes leave it, whether or not that is better."""
    loaded = load(model)
    if loaded.frozen is not None:
        return Optimised(loaded.source, NOTHING, NOTHING)
    learn_shapes(loaded.ir)
    before = measure(loaded.ir)
    choose = ChooseLayouts(Terms(objective))
    pipeline = layouts(ONNX, choose, by_factors=by_factors)
    pipeline.run(loaded.ir, [Checking(Signature.of(loaded.ir))])
    return Optimised(to_proto(loaded), before, measure(loaded.ir), tuple(choose.notes))


def moved(found: Measure, objective: Objective) -> tuple[int, int]:
    """The figures that count, the one of the objective first."""
    if objective is Objective.BYTES:
        return found.bytes_moved, found.transposes
    return found.transposes, found.bytes_moved


def assert_same_interface(before: onnx.ModelProto, after: onnx.ModelProto) -> None:
    assert list(before.graph.input) == list(after.graph.input)
    assert list(before.graph.output) == list(after.graph.output)
