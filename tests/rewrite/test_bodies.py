"""Bodies of control flow and of functions, new nodes, and random forests."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import onnx
from hypothesis import given, settings
from onnx import helper
from onnx.reference import ReferenceEvaluator

from relayout.graph.editing.writer import ORIGIN_KEY
from tests.rewrite.rewriting import (
    as_given,
    assert_kept,
    assert_rewrites,
    assert_same_numbers,
    parse,
    rewritten,
    transposes,
)

BRANCHES = """g (bool c, float[2,3] x) => (float[2,3] y) {{
    t = Transpose<perm=[1,0]>(x)
    y = If(c) <
        then_branch = a () => (float[2,3] p) {{ p = Transpose<perm=[1,0]>(t) }},
        else_branch = b () => (float[2,3] q) {{ {other} }}
    >
}}"""


def test_a_pair_across_the_border_of_a_branch_goes() -> None:
    assert_rewrites(
        BRANCHES.format(other="u = Transpose<perm=[1,0]>(t) q = Relu(u)"),
        """g (bool c, float[2,3] x) => (float[2,3] y) {
            y = If(c) <
                then_branch = a () => (float[2,3] p) { p = Identity(x) },
                else_branch = b () => (float[2,3] q) { q = Relu(x) }
            >
        }""",
    )


def test_a_value_captured_by_a_branch_is_still_read() -> None:
    text = BRANCHES.format(other="u = Relu(t) q = Transpose<perm=[1,0]>(u)")
    result = rewritten(parse(text), choose=as_given)
    assert result.graph.node[0].op_type == "Transpose"
    assert_same_numbers(parse(text), result, exact=True)


def test_a_dead_branch_lets_go_of_what_it_captured() -> None:
    assert_rewrites(
        """g (bool c, float[2,3] x) => (float[2,3] y) {
            t = Transpose<perm=[1,0]>(x)
            dead = If(c) <
                then_branch = a () => (float[3,2] p) { p = Identity(t) },
                else_branch = b () => (float[3,2] q) { q = Relu(t) }
            >
            y = Relu(x)
        }""",
        "g (bool c, float[2,3] x) => (float[2,3] y) { y = Relu(x) }",
    )


def test_bodies_of_functions_are_rewritten() -> None:
    model = parse(
        """<ir_version: 10, opset_import: ["" : 21, "own" : 1]>
        g (float[2,3] x) => (float[2,3] y) { y = own.twice(x) }
        <domain: "own", opset_import: ["" : 21]>
        twice (a) => (b) {
            t = Transpose<perm=[1,0]>(a)
            u = Transpose<perm=[1,0]>(t)
            b = Relu(u)
        }"""
    )
    result = rewritten(model)
    assert [node.op_type for node in result.functions[0].node] == ["Relu"]
    assert_same_numbers(model, result, exact=True)


def test_a_constant_in_a_function_becomes_a_node() -> None:
    model = parse(
        """<ir_version: 10, opset_import: ["" : 21, "own" : 1]>
        g (float[3,2] x) => (float[3,2] y) { y = own.plus(x) }
        <domain: "own", opset_import: ["" : 21]>
        plus (a) => (b) {
            w = Constant<value = float[2,3] {1,2,3,4,5,6}>()
            t = Transpose<perm=[1,0]>(w)
            b = Add(a, t)
        }"""
    )
    result = rewritten(model)
    assert [node.op_type for node in result.functions[0].node] == ["Constant", "Add"]
    assert_same_numbers(model, result, exact=True)


def test_a_perm_bound_by_the_caller_is_left_alone() -> None:
    model = parse(
        """<ir_version: 10, opset_import: ["" : 21, "own" : 1]>
        g (float[2,3] x) => (float[2,3] y) { y = own.turn<p = [1,0]>(x) }
        <domain: "own", opset_import: ["" : 21]>
        turn <p> (a) => (b) {
            t = Transpose<perm: ints = @p>(a)
            b = Transpose<perm: ints = @p>(t)
        }"""
    )
    assert [node.op_type for node in rewritten(model).functions[0].node] == ["Transpose"] * 2


def test_an_unknown_operator_stays_even_when_nothing_reads_it() -> None:
    assert_kept(
        """g (float[2,3] x) => (float[2,3] y) {
            d = com.microsoft.Unheard(x)
            y = Relu(x)
        }"""
    )


def test_new_nodes_name_the_nodes_they_replace() -> None:
    model = parse(
        """g (float[3,5] a, float[3,2] b) => (float[5,2] y) {
            t = Transpose<perm=[1,0]>(a)
            y = MatMul(t, b)
        }"""
    )
    model.graph.node[1].name = "product"
    (node,) = rewritten(model).graph.node
    assert {entry.key: entry.value for entry in node.metadata_props} == {ORIGIN_KEY: "product"}


PERMS = st.permutations(range(3)).map(tuple)


@st.composite
def forests(draw: st.DrawFn) -> onnx.ModelProto:
    """Random trees of Transposes and unary operators over one input, with several outputs."""
    dims = draw(st.sampled_from([(2, 3, 5), (3, 3, 3), (1, 2, 1), (2, 0, 3)]))
    shapes: dict[str, tuple[int, ...]] = {"x": dims}
    nodes = []
    for index in range(draw(st.integers(1, 12))):
        source = draw(st.sampled_from(sorted(shapes)))
        name = f"v{index}"
        if draw(st.booleans()):
            perm = draw(PERMS)
            nodes.append(helper.make_node("Transpose", [source], [name], perm=perm))
            shapes[name] = tuple(shapes[source][axis] for axis in perm)
        else:
            nodes.append(helper.make_node("Neg", [source], [name]))
            shapes[name] = shapes[source]
    count = draw(st.integers(1, len(nodes)))
    outputs = draw(st.permutations([f"v{i}" for i in range(len(nodes))]))[:count]
    graph = helper.make_graph(
        nodes,
        "forest",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, dims)],
        [helper.make_tensor_value_info(o, onnx.TensorProto.FLOAT, shapes[o]) for o in outputs],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(forests())
def test_random_forests_compute_the_same_with_no_more_transposes(model: onnx.ModelProto) -> None:
    result = rewritten(model)
    assert transposes(result) <= transposes(model)
    dims = [dim.dim_value for dim in model.graph.input[0].type.tensor_type.shape.dim]
    x = np.random.default_rng(0).permutation(int(np.prod(dims))).reshape(dims).astype(np.float32)
    expected = ReferenceEvaluator(model).run(None, {"x": x})
    got = ReferenceEvaluator(result).run(None, {"x": x})
    for one, other in zip(expected, got, strict=True):
        assert one.shape == other.shape
        assert one.tobytes() == other.tobytes()
