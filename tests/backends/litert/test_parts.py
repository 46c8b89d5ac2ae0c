"""Quantised models whose steps add up: each part is compared on the bytes of the given model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from relayout.backends.litert.compiling import optimised, write_module
from relayout.backends.litert.flat_graph import FlatGraph
from relayout.backends.litert.flatbuffer import to_bytes
from relayout.backends.litert.fusing import fused
from relayout.backends.litert.lowering import lowered
from relayout.backends.litert.parts import LoweredFile, PartFile, cut_into_parts, ends_of_parts
from relayout.backends.litert.quantised import on_bytes
from relayout.backends.litert.steps import steps_of
from relayout.backends.litert.verification import compare_file
from relayout.backends.options import CompileOptions
from relayout.graph.io.load import load
from relayout.graph.io.save import to_proto
from relayout.verify.verdict import NumericOptions, NumericVerdict, WithinSteps
from tests.backends.litert.building import model_of
from tests.backends.litert.test_open_length import opened
from tests.backends.litert.test_quantised import quantiser

STEP = 0.005


def growing(kind: Any = np.int8, factor: float = 4.0) -> onnx.ModelProto:
    """Means of four bytes, of which many are ties, and a quantiser with steps 1.6 times as fine."""
    zero = 128 if kind is np.uint8 else 0
    parts = [
        quantiser("x", kind, STEP, zero),
        quantiser("p", kind, STEP, zero),
        quantiser("y", kind, 0.0125, zero),
    ]
    held = {name: each for _, constants in parts for name, each in constants.items()}
    nodes = [
        *parts[0][0],
        helper.make_node("AveragePool", ["x_d"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
        *parts[1][0],
        helper.make_node("Mul", ["p_d", "factor"], ["y"]),
        *parts[2][0],
    ]
    held["factor"] = np.float32(factor)
    return model_of(nodes, {"x": (1, 8, 24, 24)}, ["y_d"], held)


def verdict_on(model: onnx.ModelProto, folder: Path) -> NumericVerdict:
    given = folder / "in.onnx"
    onnx.save(model, given)
    options = CompileOptions(inputs=NumericOptions())
    verdict = write_module(str(given), str(folder / "out.tflite"), options).verdict
    assert verdict is not None
    return verdict


@pytest.mark.parametrize("kind", [np.int8, np.uint8])
def test_steps_that_add_up_on_the_way_are_no_error(tmp_path: Path, kind: Any) -> None:
    verdict = verdict_on(growing(kind), tmp_path)
    assert verdict.equal
    assert verdict.within_steps is not None
    assert verdict.within_steps.at_end < 0.999 <= verdict.within_steps.share
    assert verdict.within_steps.parts == 5
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.onnx", "out.tflite"]


def test_parts_are_compared_at_two_lengths_where_one_is_open(tmp_path: Path) -> None:
    verdict = verdict_on(opened(growing()), tmp_path)
    assert verdict.equal
    assert verdict.within_steps is not None
    assert verdict.within_steps.at_end < 0.999 <= verdict.within_steps.share
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.onnx", "out.tflite"]


def as_it_is(graph: FlatGraph) -> None:
    del graph


def shift(graph: FlatGraph) -> None:
    """Let a quantiser be off by one: each of its bytes is."""
    *_, tensor = (op.outputs[0] for op in graph.operators if op.builtin == "QUANTIZE")
    assert tensor.steps is not None
    tensor.steps = replace(tensor.steps, zero_points=(tensor.steps.zero_points[0] + 1,))


def turn(graph: FlatGraph) -> None:
    """Let one window lie elsewhere than in the model."""
    (pool,) = (op for op in graph.operators if op.builtin == "AVERAGE_POOL_2D")
    pool.options = {**pool.options, "filterHeight": 1}


def compared(
    given: onnx.ModelProto,
    made_of: onnx.ModelProto,
    folder: Path,
    spoil: Callable[[FlatGraph], None] = as_it_is,
) -> NumericVerdict:
    """A model with a file that was made of one, and with the parts of that file."""
    onnx.save(given, folder / "given.onnx")
    onnx.save(made_of, folder / "other.onnx")
    model = optimised(load(folder / "other.onnx"), CompileOptions())
    onnx.save(to_proto(model), folder / "lowered.onnx")
    graph = on_bytes(fused(lowered(model.ir)))
    spoil(graph)
    ends = ends_of_parts(graph, model.ir)
    cut, fed = cut_into_parts(graph, ends)
    (folder / "out.tflite").write_bytes(to_bytes(graph, {}))
    (folder / "parts.tflite").write_bytes(to_bytes(cut, {}))
    names = {end.name: value for end, value in ends.items()}
    lowered_file = LoweredFile(folder / "lowered.onnx")
    parts = PartFile(folder / "parts.tflite", (lowered_file,), fed, names)
    return compare_file(
        folder / "given.onnx",
        folder / "out.tflite",
        NumericOptions(),
        fixed=True,
        steps=steps_of(graph),
        parts=PartFile.from_json(parts.to_json()),
    )


def test_parts_of_the_file_itself_agree(tmp_path: Path) -> None:
    assert compared(growing(), growing(), tmp_path).equal


@pytest.mark.parametrize("spoil", [shift, turn])
def test_a_part_that_is_wrong_is_found(tmp_path: Path, spoil: Callable[[FlatGraph], None]) -> None:
    verdict = compared(growing(), growing(), tmp_path, spoil)
    assert verdict.status == "differs"
    assert "0.00 % in one of 5 parts" in verdict.not_rounding


def test_parts_have_to_be_those_of_the_given_model(tmp_path: Path) -> None:
    verdict = compared(growing(), growing(factor=4.3), tmp_path)
    assert verdict.status == "differs"
    assert "0.00 % in one of 5 parts" in verdict.not_rounding


def test_a_verdict_by_parts_travels_as_data_and_states_both_shares() -> None:
    verdict = NumericVerdict("equal", within_steps=WithinSteps(0.9995, 7, 0.91))
    assert NumericVerdict.from_json(verdict.to_json()) == verdict
    text = "99.95 % of elements of each of 7 parts on the model's own bytes (91.00 % at the end)"
    assert text in verdict.summary()
