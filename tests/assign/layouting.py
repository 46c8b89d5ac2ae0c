"""The whole pipeline on a model in ONNX text, with every check that its result must pass."""

from __future__ import annotations

import onnx

from relayout.assign.choose import ChooseLayouts
from relayout.assign.terms import Terms
from relayout.graph.invariants import Signature
from relayout.graph.io.load import load
from relayout.graph.io.model import LoadedModel
from relayout.graph.io.save import to_proto
from relayout.ops.measure import Measure, Objective, measure
from relayout.optimizer.pipeline import Checking, layouts
from relayout.targets.target import ONNX
from tests.rewrite.rewriting import assert_same_numbers, parse


def assert_layouts(
    text: str,
    transposes: int,
    *,
    bytes_moved: int | None = None,
    objective: Objective = Objective.BYTES,
    exact: bool = True,
    opset: int = 21,
) -> onnx.ModelProto:
    """The pipeline leaves exactly so many Transposes, and bytes read and written by them."""
    result, left = laid_out(text, objective, exact, opset)
    shown = onnx.printer.to_text(result)
    assert left.transposes == transposes, shown
    assert bytes_moved is None or left.bytes_moved == bytes_moved, shown
    return result


def laid_out(
    text: str, objective: Objective = Objective.BYTES, exact: bool = True, opset: int = 21
) -> tuple[onnx.ModelProto, Measure]:
    """The model after the pipeline, checked from every side, and what it still moves."""
    given = parse(text, opset)
    onnx.checker.check_model(given, full_check=True)
    loaded = load(given)
    before = measure(loaded.ir)
    _run(loaded, objective)
    result = to_proto(loaded)
    onnx.checker.check_model(result, full_check=True)
    assert _interface(result) == _interface(given)
    assert_same_numbers(given, result, exact)
    again = load(result)
    after = measure(again.ir)
    assert not before.better_than(after, objective), onnx.printer.to_text(result)
    _run(again, objective)
    assert not measure(again.ir).better_than(after, objective), "a second run improves something"
    return result, after


def _run(loaded: LoadedModel, objective: Objective) -> None:
    interface = Signature.of(loaded.ir)
    layouts(ONNX, ChooseLayouts(Terms(objective))).run(loaded.ir, [Checking(interface)])


def _interface(model: onnx.ModelProto) -> list[bytes]:
    values = (*model.graph.input, *model.graph.output)
    return [value.SerializeToString(deterministic=True) for value in values]
