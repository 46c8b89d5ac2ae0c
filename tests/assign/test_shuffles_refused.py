"""Where entries may not come in another order: what is unknown, kept, or means something else."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import relayout
from relayout.ops.registry import FACTS
from tests.rewrite.rewriting import parse

SHUFFLED = """
    apart = Constant<value_ints=[0,2,3,4]>() a = Reshape(s, apart)
    b = Transpose<perm=[0,2,1,3]>(a)
    joined = Constant<value_ints=[0,6,4]>() c = Reshape(b, joined)"""
"""Channels are shuffled, as ShuffleNet does."""

WEIGHT = f"float[5,6,1] w = {{{','.join(str(i % 7 - 3) for i in range(30))}}}"


def left(model: onnx.ModelProto, **options: object) -> int:
    result = relayout.optimize(model, minimize="count", verify=False, **options)  # type: ignore[arg-type]
    return result.after.transposes


def test_it_ends_in_a_convolution() -> None:
    text = f"g (float[N,6,4] s) => (float[N,5,4] y) <{WEIGHT}> {{ {SHUFFLED} y = Conv(c, w) }}"
    assert left(parse(text)) == 0


@pytest.mark.parametrize(
    "node",
    ["Conv(x, v, unknown)", "BatchNormalization(x, unknown, one, one, one)"],
)
def test_a_parameter_of_unknown_rank(node: str) -> None:
    """It may have an entry for every channel, which would not follow."""
    values = ",".join(str(i % 5 - 2) for i in range(36))
    text = f"""g (float[N,6,4] x, float[] unknown) => (float[N,5,4] y)
        <{WEIGHT}, float[6,6,1] v = {{{values}}}, float[6] one = {{1,1,1,1,1,1}}> {{
        s = {node} {SHUFFLED} r = Relu(c) y = Conv(r, w) }}"""
    model = parse(text)
    del model.graph.input[1].type.tensor_type.shape.dim[:]
    model.graph.input[1].type.tensor_type.ClearField("shape")
    result = relayout.optimize(model, minimize="count", verify=False).model
    rng = np.random.default_rng(0)
    feeds = {
        "x": rng.normal(size=(2, 6, 4)).astype(np.float32),
        "unknown": rng.normal(size=6).astype(np.float32),
    }
    (wanted,) = ReferenceEvaluator(model).run(None, feeds)
    (got,) = ReferenceEvaluator(result).run(None, feeds)
    np.testing.assert_allclose(np.asarray(got), np.asarray(wanted), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("spatial", "transposes"), [(0, 1), (1, 0)])
def test_parameters_for_every_place(spatial: int, transposes: int) -> None:
    """Places that a product makes in any order may not leave the parameters they belong to."""
    shape = "[6,4]" if spatial == 0 else "[6]"
    count = 24 if spatial == 0 else 6
    parameters = ", ".join(
        f"float{shape} {name} = {{{','.join(str(1 + (i * step) % 5) for i in range(count))}}}"
        for step, name in enumerate(("scale", "shift", "mean", "variance"), 1)
    )
    columns = ",".join(str(i % 7 - 3) for i in range(12))
    text = f"""g (float[N,6,3] x) => (float[N,6,4] y) <float[3,4] w = {{{columns}}}, {parameters},
        int64[4] apart = {{0,6,2,2}}, int64[3] joined = {{0,6,4}}> {{
        m = MatMul(x, w)
        n = BatchNormalization<spatial={spatial}>(m, scale, shift, mean, variance)
        a = Reshape(n, apart)
        b = Transpose<perm=[0,1,3,2]>(a)
        y = Reshape(b, joined) }}"""
    assert left(parse(text, opset=8)) == transposes


def test_what_is_kept_keeps_its_weights() -> None:
    text = f"g (float[N,6,4] s) => (float[N,5,4] y) <{WEIGHT}> {{ {SHUFFLED} y = Conv(c, w) }}"
    assert left(parse(text), keep=["op:Conv"]) == 1


def test_a_node_that_a_round_removes_can_be_named() -> None:
    text = f"""g (float[N,6,4] x) => (float[N,5,4] y) <{WEIGHT}> {{
        s = Transpose<perm=[0,1,2]>(x) {SHUFFLED} y = Conv(c, w) }}"""
    model = parse(text)
    model.graph.node[0].name = "gone"
    assert left(model, keep=["gone"]) == 0


@pytest.fixture
def mine() -> Iterator[str]:
    domain = "test.refused"
    yield domain
    for key in [key for key in FACTS if key[0] == domain]:
        del FACTS[key]


def test_an_operator_like_a_known_one_may_compute_other_numbers(mine: str) -> None:
    """A softmax that masks by place is like Softmax in its axes, but not in its entries."""
    relayout.register_operator(mine, "CausalSoftmax", like="Softmax")
    weight = numpy_helper.from_array(np.ones((6, 2), np.float32), "w")
    shapes = [
        numpy_helper.from_array(np.asarray(shape, np.int64), name)
        for name, shape in (("apart", (3, 2, 3)), ("joined", (3, 6)))
    ]
    nodes = [
        helper.make_node("Reshape", ["x", "apart"], ["a"]),
        helper.make_node("Transpose", ["a"], ["b"], perm=[0, 2, 1]),
        helper.make_node("Reshape", ["b", "joined"], ["c"]),
        helper.make_node("CausalSoftmax", ["c"], ["d"], domain=mine, axis=-1),
        helper.make_node("MatMul", ["d", "w"], ["y"]),
    ]
    declared = [
        helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape)
        for name, shape in (("x", (3, 6)), ("y", (3, 2)), ("d", (3, 6)))
    ]
    graph = helper.make_graph(nodes, "g", declared[:1], declared[1:2], [weight, *shapes])
    graph.value_info.append(declared[2])
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid(mine, 1)]
    assert left(helper.make_model(graph, opset_imports=opsets, ir_version=10)) == 1


def test_an_operand_of_unknown_rank_is_no_crash(mine: str) -> None:
    text = f"""<ir_version: 10, opset_import: ["" : 21, "{mine}" : 1]>
    g (float[N,6,4] x) => (float[N,5,4] y) <{WEIGHT}, float[N,6,4] s> {{
        u = {mine}.Unknown(x)
        s = Softmax(u) {SHUFFLED} y = Conv(c, w) }}"""
    assert left(parse(text)) <= 1
