"""Slow Transposes become two fast ones, which ONNX Runtime does not merge again."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import onnx
import onnxruntime
import pytest

import relayout
from relayout.layout.moves import Move
from relayout.layout.permutation import Permutation
from relayout.targets.prices.table import shipped
from tests.rewrite.rewriting import parse

PRICES = shipped("onnxruntime_x86_64")

REVERSED = """
<ir_version: 10, opset_import: ["" : 17]>
g (float[{0},1,56,32] x) => (float[32,56,1,{0}] y) {{
    y = Transpose<perm = [3, 2, 1, 0]>(x)
}}
"""


def transposes(model: onnx.ModelProto) -> list[list[int]]:
    return [list(n.attribute[0].ints) for n in model.graph.node if n.op_type == "Transpose"]


@pytest.mark.parametrize("length", ["64", "N"])
def test_a_reversal_is_two_moves_of_one_axis(length: str) -> None:
    given = parse(REVERSED.format(length))
    result = relayout.optimize(given, target="ort")
    assert result.accepted
    assert len(transposes(result.model)) == 2
    data = np.random.default_rng(0).random((64, 1, 56, 32), np.float32)
    session = onnxruntime.InferenceSession(result.model.SerializeToString())
    (found,) = session.run(None, {"x": data})
    assert np.array_equal(found, data.transpose(3, 2, 1, 0))


def test_two_unknown_lengths_stay_one_transpose() -> None:
    text = REVERSED.format("N").replace("56", "M")
    result = relayout.optimize(parse(text), target="ort", verify=False)
    assert len(transposes(result.model)) == 1
    assert not result.changed


def test_other_objectives_split_nothing() -> None:
    given = parse(REVERSED.format("64"))
    result = relayout.optimize(given, target="ort", minimize="bytes", verify=False)
    assert len(transposes(result.model)) == 1


def test_a_second_run_changes_nothing() -> None:
    first = relayout.optimize(parse(REVERSED.format("64")), target="ort", verify=False).model
    assert not relayout.optimize(first, target="ort", verify=False).changed


UNITS = """
<ir_version: 10, opset_import: ["" : 17]>
g (float[{0},49,1,96] x) => (float[1,{0},96,49] y) {{
    y = Transpose<perm = [2, 0, 3, 1]>(x)
}}
"""


@pytest.mark.parametrize("length", ["64", "N"])
def test_unit_axes_that_hinder_a_fast_kernel_are_dropped(length: str) -> None:
    result = relayout.optimize(parse(UNITS.format(length)), target="ort")
    assert result.accepted
    assert transposes(result.model) == [[0, 2, 1]]
    data = np.random.default_rng(0).random((64, 49, 1, 96), np.float32)
    session = onnxruntime.InferenceSession(result.model.SerializeToString())
    (found,) = session.run(None, {"x": data})
    assert np.array_equal(found, data.transpose(2, 0, 3, 1))


def test_unit_axes_that_hinder_nothing_stay() -> None:
    text = UNITS.format("64").replace("[2, 0, 3, 1]", "[0, 2, 3, 1]").replace("1,64,96", "64,1,96")
    assert not relayout.optimize(parse(text), target="ort", verify=False).changed


def hindered(model: onnx.ModelProto) -> list[bool]:
    inferred = onnx.shape_inference.infer_shapes(model).graph
    values = {value.name: value for value in (*inferred.input, *inferred.value_info)}
    return [
        Move.of(
            [dim.dim_value for dim in values[node.input[0]].type.tensor_type.shape.dim],
            Permutation(tuple(node.attribute[0].ints)),
        ).is_hindered
        for node in inferred.node
        if node.op_type == "Transpose"
    ]


@pytest.mark.parametrize("perm", list(permutations(range(5)))[7::13])
def test_any_order_of_unit_axes_is_written_without_a_slow_transpose(perm: tuple[int, ...]) -> None:
    shape = (1, 96, 1, 40, 36)
    text = REVERSED.replace("{0},1,56,32", ",".join(map(str, shape)))
    text = text.replace("32,56,1,{0}", ",".join(str(shape[axis]) for axis in perm))
    given = parse(text.replace("3, 2, 1, 0", str(perm)[1:-1]).format())
    result = relayout.optimize(given, target="ort", verify=False)
    data = np.random.default_rng(0).random(shape, np.float32)
    session = onnxruntime.InferenceSession(result.model.SerializeToString())
    (found,) = session.run(None, {"x": data})
    assert np.array_equal(found, data.transpose(perm))
    assert not any(hindered(result.model))
