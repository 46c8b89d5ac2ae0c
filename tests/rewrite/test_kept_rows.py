"""Transposes of rows stay in place, so that ONNX Runtime makes no slow one of two fast ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx.numpy_helper import from_array

import relayout
from relayout.layout.move_class import MoveClass
from relayout.layout.moves import Move
from relayout.layout.permutation import Permutation
from tests.rewrite.rewriting import parse

WINDOWS = """
<ir_version: 8, opset_import: ["" : 17]>
g (float[{batch},{features},2,7,2,7] x) => (float[{batch},{features},14,14] y)
<int64[3] tokens = {{-1, 49, {features}}}, int64[6] image = {{-1, 2, 2, 7, 7, {features}}},
 int64[4] square = {{-1, {features}, 14, 14}}> {{
    c = Transpose<perm = [0, 2, 3, 4, 5, 1]>(x)
    r = Transpose<perm = [0, 1, 3, 2, 4, 5]>(c)
    t = Reshape(r, tokens)
    k = Softmax<axis = 1>(t)
    q = MatMul(mixed, k)
    m = Reshape(q, image)
    b = Transpose<perm = [0, 1, 3, 2, 4, 5]>(m)
    z = {met}
    l = LayerNormalization<axis = -1>(z, s)
    p = MatMul(l, v)
    j = Add(z, p)
    h = Transpose<perm = [0, 5, 1, 2, 3, 4]>(j)
    d = Reshape(h, square)
    o = Conv<pads = [1, 1, 1, 1]>(d, w)
    f = Transpose<perm = [0, 2, 3, 1]>(o)
    g = Relu(f)
    y = Transpose<perm = [0, 3, 1, 2]>(g)
}}
"""


def windows(met: str, features: int = 192, batch: str = "1") -> onnx.ModelProto:
    """Windows are moved together, mixed and moved apart; two Transposes at the end may go."""
    model = parse(WINDOWS.format(met=met, features=features, batch=batch))
    random = np.random.default_rng(0)
    shapes = {
        "w": (features, features, 3, 3),
        "s": (features,),
        "v": (features, features),
        "mixed": (49, 49),
    }
    arrays = {name: random.random(shape, np.float32) for name, shape in shapes.items()}
    model.graph.initializer.extend(from_array(array, name) for name, array in arrays.items())
    return model


def _slow_in_runtime(model: onnx.ModelProto, saved: Path) -> int:
    """How many Transposes that move element by element the runtime makes of a model."""
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = str(saved)
    data = model.SerializeToString()
    onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    nodes = [node for node in onnx.load(saved).graph.node if node.op_type == "Transpose"]
    orders = [Permutation(tuple(node.attribute[0].ints)) for node in nodes]
    return sum(Move.of((1, 192, 2, 7, 2, 7), each).kind is MoveClass.SCATTER for each in orders)


def kept(model: onnx.ModelProto) -> int:
    """How many Transposes are kept apart from what is no Transpose itself."""
    views = {
        node.output[0]: node.input[0] for node in model.graph.node if node.op_type == "Reshape"
    }
    flat = {node.output[0] for node in model.graph.node if node.op_type == "Flatten"}
    readers = [node for node in model.graph.node if node.op_type != "Transpose"]
    return sum(views.get(value) in flat for node in readers for value in node.input)


@pytest.mark.parametrize("met", ["Add(c, b)", "Mul(c, b)", "Sub(b, c)"])
def test_rows_that_meet_another_tensor_are_kept(met: str, tmp_path: Path) -> None:
    result = relayout.optimize(windows(met), target="ort")
    assert result.accepted
    assert kept(result.model) > 0
    assert _slow_in_runtime(result.model, tmp_path / "saved.onnx") == 0


def test_one_unknown_length_is_left_to_the_reshape() -> None:
    result = relayout.optimize(windows("Add(c, b)", batch="N"), target="ort")
    assert result.accepted
    assert kept(result.model) > 0


@pytest.mark.parametrize(
    ("met", "features", "target", "minimize"),
    [
        ("Relu(b)", 192, "ort", None),
        ("Add(c, b)", 1, "ort", None),
        ("Add(c, b)", 192, "ort", "bytes"),
        ("Add(c, b)", 192, "openvino", None),
    ],
    ids=["nothing met", "few elements", "by bytes", "another runtime"],
)
def test_others_are_not_kept(met: str, features: int, target: str, minimize: str | None) -> None:
    model = windows(met, features)
    result = relayout.optimize(model, target=target, minimize=minimize, verify=False)
    assert kept(result.model) == 0


def test_a_second_run_changes_nothing() -> None:
    first = relayout.optimize(windows("Add(c, b)"), target="ort", verify=False).model
    assert not relayout.optimize(first, target="ort", verify=False).changed
