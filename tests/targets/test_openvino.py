"""What is written for OpenVINO: standard operators, in forms that it joins."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime
import pytest

import relayout
from relayout.graph.io.load import load
from relayout.optimizer.pipeline import local_rules
from relayout.targets.prediction import measure_on
from relayout.targets.target import OPENVINO, TARGETS
from tests.rewrite.rewriting import parse

HEADER = '<ir_version: 8, opset_import: ["": 17]>'

WEIGHT_BEHIND_TRANSPOSES = f"""{HEADER}
g (float[2,8,6] x) => (float[2,5,6] y) <float[8,5] w = {{{",".join(map(str, range(40)))}}}> {{
    a = Transpose<perm=[0,2,1]>(x)
    b = MatMul(a, w)
    y = Transpose<perm=[0,2,1]>(b)
}}"""

ATTENTION = f"""{HEADER}
g (float[1,7,2,4] q, float[1,7,2,4] k, float[1,7,2,4] v) => (float[1,7,2,4] y) {{
    q1 = Transpose<perm=[0,2,1,3]>(q)
    k1 = Transpose<perm=[0,2,3,1]>(k)
    v1 = Transpose<perm=[0,2,1,3]>(v)
    s = MatMul(q1, k1)
    p = Softmax<axis=-1>(s)
    o = MatMul(p, v1)
    y = Transpose<perm=[0,2,1,3]>(o)
}}"""

AROUND_CONVOLUTION = f"""{HEADER}
g (float[1,3,8,8] x) => (float[1,4,8,8] y)
<float[4,3,1,1] w = {{{",".join(map(str, range(12)))}}}> {{
    c = Conv(x, w)
    a = Transpose<perm=[0,2,3,1]>(c)
    r = Relu(a)
    y = Transpose<perm=[0,3,1,2]>(r)
}}"""


def operators(model: onnx.ModelProto) -> list[str]:
    return [node.op_type for node in model.graph.node]


def test_a_weight_stays_the_second_factor() -> None:
    """Target onnx exchanges the factors here, and OpenVINO would pack the weight in each run."""
    given = parse(WEIGHT_BEHIND_TRANSPOSES)
    assert operators(relayout.optimize(given, target="onnx").model) == ["MatMul"]
    assert operators(relayout.optimize(given, target="openvino").model) == operators(given)


def test_an_attention_stays_as_exporters_write_it() -> None:
    given = parse(ATTENTION)
    for minimize in ("bytes", "count"):
        made = relayout.optimize(given, target="openvino", minimize=minimize).model
        assert operators(made) == operators(given)


def test_transposes_around_elementwise_operators_vanish() -> None:
    made = relayout.optimize(parse(AROUND_CONVOLUTION), target="openvino").model
    assert operators(made) == ["Conv", "Relu"]


@pytest.mark.parametrize("text", [WEIGHT_BEHIND_TRANSPOSES, ATTENTION, AROUND_CONVOLUTION])
def test_only_standard_operators_are_written(text: str) -> None:
    made = relayout.optimize(parse(text), target="openvino").model
    assert {node.domain for node in made.graph.node} == {""}
    assert not made.functions


SPLIT_OF_HEADS = f"""{HEADER}
g (float[1,64,3,4,32] x) => (float[1,4,64,64] s, float[1,64,4,32] v) <int64[1] one = {{0}}> {{
    m = Transpose<perm=[2,0,3,1,4]>(x)
    q1, k1, v1 = Split<axis=0>(m)
    q = Squeeze(q1, one)
    k2 = Squeeze(k1, one)
    v2 = Squeeze(v1, one)
    k = Transpose<perm=[0,1,3,2]>(k2)
    s = MatMul(q, k)
    v = Transpose<perm=[0,2,1,3]>(v2)
}}"""


def test_views_into_a_product_are_not_torn_apart() -> None:
    """The Transpose of keys is a part of the product, and Splits of the outermost axis are views.

    By bytes each part would be moved by itself, after a Split that copies.
    """
    given = parse(SPLIT_OF_HEADS)
    assert not relayout.optimize(given, target="openvino").changed
    assert relayout.optimize(given, target="openvino", minimize="bytes").changed


CHANNELS_FIRST_AGAIN = f"""{HEADER}
g (float[64,6] x) => (float[1,6,8,8] y)
<int64[3] rows = {{1,64,6}}, int64[4] shape = {{1,8,8,6}}> {{
    r = Relu(x)
    m = Reshape(r, rows)
    v = Reshape(m, shape)
    y = Transpose<perm=[0,3,1,2]>(v)
}}"""


def test_transposes_stay_on_the_axes_they_have() -> None:
    """OpenVINO knows channels by four axes; the same move of a matrix is a copy to it."""
    kept = rewritten("openvino")
    assert [node.attribute[0].ints for node in kept] == [[0, 3, 1, 2]]
    assert [node.attribute[0].ints for node in rewritten("onnx")] == [[1, 0]]


def rewritten(target: str) -> list[onnx.NodeProto]:
    """The Transposes of the example after the local rules of a target."""
    model = load(parse(CHANNELS_FIRST_AGAIN)).ir
    local_rules(TARGETS[target]).run(model)
    nodes = ir.to_proto(model).graph.node
    return [node for node in nodes if node.op_type == "Transpose"]


def predicted(text: str) -> int:
    found = measure_on(OPENVINO, load(parse(text)).ir, {}).nanoseconds
    assert found is not None
    return found


def test_normalisations_on_four_axes_are_several_kernels() -> None:
    normal = f"""{HEADER}
    g (float[%s] x) => (float[%s] y) <float[8] w = {{1,1,1,1,1,1,1,1}}> {{
        y = LayerNormalization<axis=-1>(x, w)
    }}"""
    three, four = (predicted(normal % (shape, shape)) for shape in ("2,6,8", "2,2,3,8"))
    assert four > 2 * three


def test_arithmetic_on_lengths_takes_nothing() -> None:
    text = f"""{HEADER}
    g (float[2,6] x) => (float[12] y) {{
        shape = Shape(x)
        count = ReduceProd(shape)
        y = Reshape(x, count)
    }}"""
    assert predicted(text) == 0


def test_openvino_computes_the_same() -> None:
    openvino = pytest.importorskip("openvino")
    given = parse(AROUND_CONVOLUTION)
    made = relayout.optimize(given, target="openvino").model
    value = np.random.default_rng(0).standard_normal((1, 3, 8, 8)).astype(np.float32)
    session = onnxruntime.InferenceSession(given.SerializeToString())
    (expected,) = session.run(None, {"x": value})
    core, floats = openvino.Core(), {"INFERENCE_PRECISION_HINT": "f32"}
    compiled = core.compile_model(core.read_model(made.SerializeToString()), "CPU", floats)
    assert np.allclose(compiled(value)[0], expected, atol=1e-4)
