"""What ends a chain of views, what leaves it alone, and random chains."""

from __future__ import annotations

import onnx
import pytest
from onnx import TensorProto, helper

from relayout.graph.editing.writer import ORIGIN_KEY
from relayout.layout.permutation import Permutation
from relayout.layout.strided_view import View, composed
from tests.layout.test_strided_view import numbers, random_chain
from tests.rewrite.rewriting import (
    assert_kept,
    assert_same_numbers,
    canonical,
    parse,
    rewritten,
    transposes,
)

BATCHES = pytest.mark.parametrize("n", ["2", "N"], ids=["static", "symbolic"])


def test_another_reader_parts_a_chain() -> None:
    assert_kept(
        """g (float[N,3,8] x) => (float[N,24] y, float[N,8,3] z) <int64[2] s = {0,24}> {
            a = Transpose<perm=[0,2,1]>(x)
            z = Relu(a)
            b = Reshape(a, s)
            y = Relu(b)
        }"""
    )


def test_an_output_parts_a_chain() -> None:
    assert_kept(
        """g (float[4,6] x) => (float[24] a, float[2,12] y)
           <int64[1] s = {24}, int64[2] t = {2,12}> {
            a = Reshape(x, s)
            y = Reshape(a, t)
        }"""
    )


def test_a_body_that_reads_parts_a_chain() -> None:
    assert_kept(
        """g (float[4,6] x, bool c) => (float[2,12] y, float[24] z)
           <int64[1] s = {24}, int64[2] t = {2,12}> {
            a = Reshape(x, s)
            b = Reshape(a, t)
            y = Relu(b)
            z = If (c) <
                then_branch = p () => (float[24] u) { u = Relu(a) },
                else_branch = q () => (float[24] v) { v = Neg(a) }
            >
        }"""
    )


def test_chains_in_bodies_are_shortened() -> None:
    model = parse(
        """g (float[2,3,8] x, bool c) => (float[2,3,8] z)
           <int64[2] s = {2,24}, int64[3] t = {2,8,3}> {
            z = If (c) <
                then_branch = p () => (float[2,3,8] u) {
                    a = Transpose<perm=[0,2,1]>(x)
                    b = Reshape(a, s)
                    d = Reshape(b, t)
                    e = Transpose<perm=[0,2,1]>(d)
                    u = Relu(e)
                },
                else_branch = q () => (float[2,3,8] v) { v = Neg(x) }
            >
        }"""
    )
    assert transposes(rewritten(model)) == 0


def test_two_lengths_of_the_run_cannot_be_asked_for() -> None:
    assert_kept(
        """g (float[N,1,S] x) => (float[N,S,1] y) <int64[1] s = {1}, int64[1] t = {2}> {
            a = Squeeze(x, s)
            b = Unsqueeze(a, t)
            y = Relu(b)
        }"""
    )


def test_a_length_is_not_asked_for_beside_one_that_may_be_zero() -> None:
    assert_kept(
        """g (float[N,4,1,S] x) => (float[N,4,S,1] y) <int64[1] s = {2}, int64[1] t = {3}> {
            a = Squeeze(x, s)
            b = Unsqueeze(a, t)
            y = Relu(b)
        }"""
    )


def test_without_elements_nothing_is_done() -> None:
    assert_kept(
        """g (float[0,4] x) => (float[0,2] y) <int64[1] s = {0}, int64[2] t = {0,2}> {
            a = Reshape<allowzero=1>(x, s)
            b = Reshape<allowzero=1>(a, t)
            y = Relu(b)
        }"""
    )


TARGETS_OF_THE_RUN = {
    "unknown rank": """g (float[4,6] x, int64[r] s) => (float[24] y) <int64[1] t = {24}> {
        a = Reshape(x, s)
        b = Reshape(a, t)
        y = Relu(b)
    }""",
    "a view as target": """g (float[4,6] x, int64[1,2] i) => (float[A,B] y) <int64[1] t = {2}> {
        s = Reshape(i, t)
        a = Reshape(x, s)
        y = Relu(a)
    }""",
}


@pytest.mark.parametrize("name", TARGETS_OF_THE_RUN)
def test_a_target_of_the_run_parts_a_chain(name: str) -> None:
    model = parse(TARGETS_OF_THE_RUN[name])
    assert canonical(rewritten(model)) == canonical(model)


# what is written


def test_new_nodes_name_their_origin_and_have_shapes() -> None:
    result = rewritten(
        parse(
            """g (float[N,12,5] x) => (float[Y,3,N] y)
               <int64[4] s = {0,3,4,5}, int64[3] t = {0,20,3}> {
                [first] a = Reshape(x, s)
                [second] b = Transpose<perm=[0,2,3,1]>(a)
                [third] c = Reshape(b, t)
                [fourth] d = Transpose<perm=[1,2,0]>(c)
                y = Relu(d)
            }"""
        )
    )
    reshape, transpose, _ = result.graph.node
    names = "first, second, third, fourth"
    for node in (reshape, transpose):
        assert {p.key: p.value for p in node.metadata_props} == {ORIGIN_KEY: names}
    shapes = {
        value.name: [dim.dim_param or dim.dim_value for dim in value.type.tensor_type.shape.dim]
        for value in result.graph.value_info
    }
    assert shapes[reshape.output[0]] == ["N", 3, 20]
    assert shapes[transpose.output[0]] == [20, 3, "N"]


@pytest.mark.parametrize("seed", range(0, 240, 2))
def test_random_chains(seed: int) -> None:
    """No more Transposes than views, and nothing left where nothing moves."""
    chain = random_chain(seed)
    shape = numbers(chain.source, {})
    nodes, constants, last = [], [], "x"
    for index, link in enumerate(chain.links):
        name = f"v{index}"
        if isinstance(link, Permutation):
            nodes.append(helper.make_node("Transpose", [last], [name], perm=link.axes))
        else:
            target = numbers(link, {})
            constants.append(
                helper.make_tensor(f"s{index}", TensorProto.INT64, [len(target)], target)
            )
            nodes.append(helper.make_node("Reshape", [last, f"s{index}"], [name]))
        last = name
    nodes.append(helper.make_node("Relu", [last], ["y"]))
    result = numbers(composed(chain.source, chain.links)[-1].shape, {})
    model = helper.make_model(
        helper.make_graph(
            nodes,
            "chain",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, result)],
            constants,
        ),
        opset_imports=[helper.make_opsetid("", 21)],
        ir_version=10,
    )
    _assert_shortest(model, composed(chain.source, chain.links))


def _assert_shortest(model: onnx.ModelProto, views: list[View]) -> None:
    result = rewritten(model)
    assert transposes(result) <= sum(view.moves for view in views)
    assert_same_numbers(model, result, exact=True)
