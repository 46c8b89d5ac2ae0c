"""Slices of opset 10, of which onnx's inference believes that they cut nothing of open lengths."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from benchmarks.judge.running import ORT, run
from relayout.api import optimize
from relayout.graph.io.load import load
from relayout.graph.read import shape_of
from relayout.graph.region import subgraphs_of
from relayout.graph.shapes.node import inferred_shape

TEXT = """<ir_version: {ir}, opset_import: ["" : {opset}]>
g (float[1,N,3,M] x, bool b) => (float[?,?,?,?] y, float[?,?,?,?] z, float[?,?,?,?] u)
<int64[2] s = {{0,0}}, int64[2] e = {{2,2}}, int64[2] t = {{1,1}}> {{
    a = Constant<value = int64[2] {{1,2}}> ()
    y = Slice(x, s, e, a, t)
    p = Transpose(x)
    q = Transpose(p)
    z = Slice(q, s, e)
    u = If(b) <
        then_branch = g1 () => (float[?,?,?,?] v) {{ v = Slice(y, s, e, , t) }},
        else_branch = g2 () => (float[?,?,?,?] w) {{ w = Identity(y) }}
    >
}}"""


def given(opset: int) -> onnx.ModelProto:
    model = onnx.parser.parse_model(TEXT.format(ir=5 if opset == 10 else 8, opset=opset))
    for graph in (model.graph, *(a.g for a in model.graph.node[-1].attribute)):
        for output in graph.output:
            output.type.tensor_type.ClearField("shape")
    return model


@pytest.mark.parametrize("opset", [10, 11, 13])
def test_no_length_is_known_of_what_a_slice_leaves_of_an_open_one(opset: int) -> None:
    model = load(given(opset)).ir
    sliced = {str(node.outputs[0].name): node.outputs[0] for node in model.graph}
    for found in (shape_of(sliced["y"]), inferred_shape(sliced["y"], opset)):
        assert found is not None
        assert (found[0], found[2], str(found[3])) == (1, 2, "M")
        assert str(found[1]) != "N"
    assert str((shape_of(sliced["z"]) or ())[1]) != "N"
    assert [node.domain for node in model.graph] == [""] * len(sliced)
    assert not model.functions


@pytest.mark.parametrize("opset", [10, 13])
def test_such_a_slice_stays(opset: int) -> None:
    """It was taken for one that leaves all."""
    model = given(opset)
    made = optimize(model, verify=False).model
    feeds = {"x": np.arange(60, dtype=np.float32).reshape(1, 5, 3, 4), "b": np.array(True)}
    assert "Transpose" not in {node.op_type for node in made.graph.node}
    for one, other in zip(*(run(each, feeds, ORT) for each in (model, made)), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("opset", [10, 13])
def test_a_slice_in_a_branch_may_read_what_is_outside(opset: int) -> None:
    bounds = "s = Constant<value = int64[2] {0,0}> () e = Constant<value = int64[2] {1,2}> ()"
    text = f"""<ir_version: 5, opset_import: ["" : {opset}]>
    g (float[1,N,3] x, bool b) => (float[?,?,?] y) {{
        y = If(b) <
            then_branch = g1 () => (float[?,?,?] v) {{ {bounds} v = Slice(x, s, e) }},
            else_branch = g2 () => (float[?,?,?] w) {{ {bounds} w = Slice(x, s, e) }}
        >
    }}"""
    model = onnx.parser.parse_model(text)
    for graph in (model.graph, *(a.g for a in model.graph.node[0].attribute)):
        graph.output[0].type.tensor_type.ClearField("shape")
    (node,) = load(model).ir.graph
    for branch in subgraphs_of(node):
        found = shape_of(branch.outputs[0])
        assert found is not None
        assert found[0] == 1
        assert str(found[1]) != "N"
