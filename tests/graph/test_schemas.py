"""Nodes that no runtime would load are refused; operators that are not known may have anything."""

from __future__ import annotations

import onnx
import pytest
from onnx import helper

import relayout
from relayout.errors import BadModelError
from relayout.graph.io.load import load
from relayout.graph.messages.schemas import check_nodes
from tests.graph.makers import function, model, node, value
from tests.graph.refusal import refusal

X = [value("x", [2, 3])]


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (node("Transpose", "", "y"), "'Transpose' node 'Transpose_y' has 0 of 1 operands"),
        (node("Relu", "x x", "y"), "has 2 of 1 operands"),
        (node("Add", "x", "y"), "has 1 of 2 operands"),
        (node("Concat", "", "y", axis=0), "has 0 of 1 to"),
        (node("Clip", "x x x x", "y"), "has 4 of 1 to 3 operands"),
        (node("Relu", "x", "y z"), "has 2 of 1 results"),
        (node("Split", "x", "", num_outputs=2), "has 0 of 1 to"),
        (node("Concat", "x x", "y"), "has 0 attributes 'axis', of which it needs one"),
        (node("Concat", "x x", "y", axis=1.5), "an attribute 'axis' of another type"),
        (node("If", "x", "y", then_branch=1, else_branch=2), "'else_branch' of another type"),
        (helper.make_node("Add", ["", "x"], ["y"]), "leaves out operand 0, which it needs"),
        (helper.make_node("Max", ["x", "", "x"], ["y"]), "leaves out operand 1, which it needs"),
    ],
    ids=lambda each: each.op_type if isinstance(each, onnx.NodeProto) else "",
)
def test_a_node_that_does_not_fit_its_operator(given: onnx.NodeProto, reason: str) -> None:
    assert reason in refusal(model([given], inputs=X))
    inside = function("own", [given])
    assert reason in refusal(model([node("Relu", "x", "y")], functions=[inside]))


@pytest.mark.parametrize(
    "given",
    [
        helper.make_node("Clip", ["x", "", "one"], ["y"]),
        helper.make_node("Clip", ["x", "", "", "", ""], ["y"]),
        helper.make_node("Dropout", ["x"], ["y", ""]),
        helper.make_node("Unheard", [], ["y"]),
    ],
)
def test_what_may_be_left_out_is(given: onnx.NodeProto) -> None:
    one = helper.make_tensor("one", 1, [], [1.0])
    assert load(model([given], inputs=X, initializers=[one])).frozen is None


def test_a_function_of_the_model_may_be_named_like_an_operator() -> None:
    own = function("Add", [node("Relu", "x", "y")])
    own.domain = "own"
    nodes = [helper.make_node("Add", ["x"], ["y"], domain="own")]
    assert load(model(nodes, functions=[own], opsets=(("", 18), ("own", 1)))).frozen is None


def test_an_output_without_a_name() -> None:
    assert "an output without a name" in refusal(
        model([node("Relu", "x", "y")], outputs=[value("y"), value("")])
    )


def test_an_output_of_another_type_than_it_is_computed_in() -> None:
    wrong = helper.make_tensor_value_info("y", onnx.TensorProto.INT8, [2, 3])
    line = refusal(model([node("Relu", "x", "y")], outputs=[wrong]))
    assert "output 'y' is declared as INT8, but is FLOAT" in line


def test_an_attribute_that_cannot_be_held_leaves_the_rest_known() -> None:
    """A Constant of a sparse tensor is valid, and onnx-ir has no attribute for it."""
    values, places = (helper.make_tensor(n, t, [1], [1]) for n, t in (("v", 1), ("i", 7)))
    sparse = helper.make_sparse_tensor(values, places, [3])
    nodes = [
        node("Constant", "", "s", sparse_value=sparse),
        node("Transpose", "x", "a", perm=[1, 0]),
        node("Relu", "a", "b"),
        node("Transpose", "b", "y", perm=[1, 0]),
    ]
    given = model(nodes, inputs=[value("x", ["N", 3])])
    assert relayout.optimize(given, verify=False).after.transposes == 0


@pytest.mark.parametrize("length", [1, 2])
def test_transposes_that_nothing_reads_can_be_looked_at(length: int) -> None:
    names = ["z", "a", "b"]
    dead = [node("Transpose", names[i], names[i + 1], perm=[1, 0]) for i in range(length)]
    given = model([node("Relu", "x", "y"), *dead], inputs=[*X, value("z", ["N", "M"])])
    assert len(relayout.inspect(given).transposes) == length


def test_what_is_compiled_has_attributes_of_the_right_type() -> None:
    given = node("LeakyRelu", "x", "y", alpha="steep")
    assert load(model([given], inputs=X)).frozen is None
    with pytest.raises(BadModelError, match="'alpha' of another type"):
        check_nodes(model([given], inputs=X), strictly=True)
