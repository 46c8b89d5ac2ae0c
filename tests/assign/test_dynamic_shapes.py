"""Views, products and attention whose lengths are known only at run time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

from relayout.api import optimize
from relayout.ops.measure import Objective
from tests.assign.layouting import laid_out
from tests.rewrite.rewriting import parse

BINDINGS: Sequence[Mapping[str, int]] = (
    {"N": 2, "H": 3, "W": 5, "S": 7},
    {"N": 3, "H": 7, "W": 4, "S": 5},
    {"N": 1, "H": 1, "W": 1, "S": 1},
)
EMPTY: Sequence[Mapping[str, int]] = (
    {"N": 0, "H": 3, "W": 5, "S": 7},
    {"N": 2, "H": 0, "W": 5, "S": 0},
)


def assert_dynamic(
    text: str, transposes: int, *, opset: int = 21, empty: bool = True, exact: bool = True
) -> onnx.ModelProto:
    """So many Transposes are left by count, and the numbers are the same for every binding."""
    result, left = laid_out(text, Objective.COUNT, exact, opset)
    assert left.transposes == transposes, onnx.printer.to_text(result)
    given = parse(text, opset)
    for lengths in (*BINDINGS, *(EMPTY if empty else ())):
        feeds = {value.name: _data(value, lengths) for value in given.graph.input}
        for one, other in zip(_run(given, feeds), _run(result, feeds), strict=True):
            assert other.shape == one.shape
            np.testing.assert_allclose(other, one, rtol=1e-5, atol=1e-5)
    return result


def _data(value: onnx.ValueInfoProto, lengths: Mapping[str, int]) -> Any:
    shape = [dim.dim_value or lengths[dim.dim_param] for dim in value.type.tensor_type.shape.dim]
    return np.random.default_rng(len(value.name)).standard_normal(shape).astype(np.float32)


def _run(model: onnx.ModelProto, feeds: Mapping[str, Any]) -> Sequence[Any]:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    outputs: Sequence[Any] = session.run(None, dict(feeds))
    return outputs


def operators(model: onnx.ModelProto) -> list[str]:
    return [node.op_type for node in model.graph.node]


TOKENS = """g (float[N,8,H,W] x) => (float[P,8,Q] y) <int64[3] target = {0, 8, -1}> {
    t = Transpose<perm=[0,2,3,1]>(x)
    shape = Shape(t)
    batch = Slice(shape, zero, one)
    rows = Slice(shape, one, two)
    columns = Slice(shape, two, three)
    pixels = Mul(rows, columns)
    flat = Concat<axis=0>(batch, pixels, channels)
    r = Reshape(t, flat)
    s = Transpose<perm=[0,2,1]>(r)
    y = Relu(s)
}"""


def test_tokens_and_back_need_no_transpose() -> None:
    constants = (
        "<int64[1] zero = {0}, int64[1] one = {1}, int64[1] two = {2}, int64[1] three = {3}, "
        "int64[1] channels = {8}>"
    )
    assert_dynamic(TOKENS.replace("<int64[3] target = {0, 8, -1}>", constants), 0)


SPLIT = """g (float[N,S,6] x, float[4] c) => (float[N,S,3,2] y)
    <int64[4] target = {0, 0, 3, 2}> {
    t = Transpose<perm=[1,0,2]>(x)
    u = Relu(t)
    r = Reshape(u, target)
    y = Transpose<perm=[1,0,2,3]>(r)
}"""


def test_copied_lengths_stay_a_constant_target() -> None:
    result = assert_dynamic(SPLIT, 0)
    assert "Shape" not in operators(result)


MOVED = """g (float[N,6,S] x) => (float[N,3,2,S] y) <int64[4] target = {0, 0, 3, 2}> {
    t = Transpose<perm=[0,2,1]>(x)
    u = Sigmoid(t)
    r = Reshape(u, target)
    v = Sigmoid(r)
    y = Transpose<perm=[0,2,3,1]>(v)
}"""


def test_a_target_with_two_open_lengths_is_put_together_at_run_time() -> None:
    result = assert_dynamic(MOVED, 0)
    reshape = next(node for node in result.graph.node if node.op_type == "Reshape")
    assert any(attribute.name == "allowzero" and attribute.i for attribute in reshape.attribute)
    assert {"Shape", "Gather", "Concat"} <= set(operators(result))


def test_it_becomes_a_constant_when_the_lengths_are_known() -> None:
    result, left = laid_out(MOVED.replace("[N", "[2").replace("S]", "7]"), Objective.COUNT)
    assert left.transposes == 0
    assert "Shape" not in operators(result)


@pytest.mark.parametrize(("opset", "transposes"), [(13, 2), (14, 0)])
def test_without_allowzero_an_empty_result_could_not_be_stated(opset: int, transposes: int) -> None:
    assert_dynamic(MOVED, transposes, opset=opset)


DIVIDED = """g (float[N,2,3,S] x) => (float[N,3,2,S] y)
    <int64[3] first = {0, 6, -1}, int64[4] target = {0, 0, 3, 2}> {
    d = Reshape(x, first)
    w = Relu(d)
    t = Transpose<perm=[0,2,1]>(w)
    u = Sigmoid(t)
    r = Reshape(u, target)
    v = Sigmoid(r)
    y = Transpose<perm=[0,2,3,1]>(v)
}"""


def test_what_the_model_divides_by_is_never_zero() -> None:
    """The first Reshape fails for an empty batch, so -1 may stand for the other length."""
    result = assert_dynamic(DIVIDED, 0, opset=13, empty=False)
    assert "Shape" not in operators(result)


def test_a_product_between_transposes_becomes_a_convolution() -> None:
    assert_dynamic(
        """g (float[N,4,H,W] x, float[N,8,H,W] z) => (float[N,8,H,W] y)
           <float[4,8] w = {1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8,9,1,2,3,4,5}> {
            t = Transpose<perm=[0,2,3,1]>(x)
            m = MatMul(t, w)
            u = Transpose<perm=[0,3,1,2]>(m)
            y = Add(u, z)
        }""",
        0,
        empty=False,
    )


HEADS = """g (float[N,S,6] q, float[N,S,6] k, float[N,S,6] v) => (float[A,B,C] y)
    <int64[1] zero = {0}, int64[1] one = {1}, int64[1] two = {2}, int64[2] split = {2, 3},
     int64[1] all = {6}> {
    shape = Shape(q)
    n = Slice(shape, zero, one)
    s = Slice(shape, one, two)
    apart = Concat<axis=0>(n, s, split)
    q4 = Reshape(q, apart)
    k4 = Reshape(k, apart)
    v4 = Reshape(v, apart)
    qt = Transpose<perm=[0,2,1,3]>(q4)
    kt = Transpose<perm=[0,2,3,1]>(k4)
    vt = Transpose<perm=[0,2,1,3]>(v4)
    scores = MatMul(qt, kt)
    p = Softmax<axis=3>(scores)
    o = MatMul(p, vt)
    ot = Transpose<perm=[0,2,1,3]>(o)
    joined = Concat<axis=0>(n, s, all)
    y = Reshape(ot, joined)
}"""


def test_attention_with_a_computed_split_is_raised() -> None:
    result = assert_dynamic(HEADS, 0, opset=23, empty=False, exact=False)
    assert "Attention" in operators(result)


def test_lengths_and_type_are_known_behind_a_quantised_concat() -> None:
    """Channels are shuffled, by a shape that is computed at run time, and read by a convolution."""
    weight = ",".join(str(number % 5) for number in range(24))
    given = parse(f"""<ir_version: 10, opset_import: ["" : 21, "com.microsoft" : 1]>
    g (uint8[N,2,3,4] a, uint8[N,4,3,4] b) => (uint8[N,4,3,4] y)
    <float s = {{0.5}}, uint8 z = {{3}}, uint8[4,6,1,1] w = {{{weight}}}> {{
      c = com.microsoft.QLinearConcat<axis=1>(s, z, a, s, z, b, s, z)
      first = Constant<value_ints=[0]>() lengths = Shape(c) batch = Gather(lengths, first)
      apart = Constant<value_ints=[2,3,3,4]>() into = Concat<axis=0>(batch, apart)
      d = Reshape(c, into) e = Transpose<perm=[0,2,1,3,4]>(d)
      joined = Constant<value_ints=[6,3,4]>() back = Concat<axis=0>(batch, joined)
      f = Reshape(e, back) y = QLinearConv(f, s, z, w, s, z, s, z) }}""")
    result = optimize(given)
    assert result.before.bytes_moved == 2 * 32 * 6 * 3 * 4
    assert (result.after.transposes, result.accepted) == (0, True)
