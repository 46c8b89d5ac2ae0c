"""A model and its result are measured with the same lengths, whatever the model declares."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import relayout

OWN = {"own symbols": ["O0", "O1", "O2"], "untrue": [7, 7, 7], "nothing": None, "open": [None] * 3}
"""What an output may declare."""

BODIES: dict[str, list[onnx.NodeProto]] = {
    "one": [helper.make_node("Transpose", ["x"], ["y"], perm=[2, 0, 1])],
    "after an operator": [
        helper.make_node("Relu", ["x"], ["a"]),
        helper.make_node("Transpose", ["a"], ["y"], perm=[1, 0, 2]),
    ],
    "two": [
        helper.make_node("Transpose", ["x"], ["y"], perm=[2, 0, 1]),
        helper.make_node("Transpose", ["x"], ["z"], perm=[1, 2, 0]),
    ],
    "computed": [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Expand", ["k", "s"], ["e"]),
        helper.make_node("Transpose", ["e"], ["y"], perm=[2, 0, 1]),
        helper.make_node("Add", ["x", "e"], ["z"]),
    ],
}


def _model(nodes: list[onnx.NodeProto], dims: Any, *, dead: bool = False) -> onnx.ModelProto:
    outputs = [name for node in nodes for name in node.output if name in {"y", "z"}]
    extra = [helper.make_node("Relu", ["x"], ["unused"])] if dead else []
    graph = helper.make_graph(
        [*nodes, *extra],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["A", 2, "C"])],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, dims) for name in outputs],
        [numpy_helper.from_array(np.ones((1, 1, 1), np.float32), "k")],
    )
    opsets = [helper.make_opsetid("", 17)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


@pytest.mark.parametrize("minimize", ["bytes", "count"])
@pytest.mark.parametrize("dead", [False, True])
@pytest.mark.parametrize("declared", OWN)
@pytest.mark.parametrize("body", BODIES)
def test_a_transpose_that_stays_gains_nothing(
    body: str, declared: str, dead: bool, minimize: str
) -> None:
    model = _model(BODIES[body], OWN[declared], dead=dead)
    first = relayout.optimize(model, minimize=minimize, verify=False)
    second = relayout.optimize(first.model, minimize=minimize, verify=False)
    assert first.before.bytes_moved == first.after.bytes_moved
    assert second.before == second.after == first.after
    assert not second.changed
    assert second.model == first.model


@pytest.mark.parametrize("body", BODIES)
def test_what_outputs_declare_changes_no_figure(body: str) -> None:
    found = {
        relayout.optimize(_model(BODIES[body], dims), verify=False).before for dims in OWN.values()
    }
    assert len(found) == 1


def test_a_choice_is_not_made_better_by_symbols_of_an_output() -> None:
    """A large constant would be moved to save two small Transposes, at 250 times the bytes."""

    def model(dims: Any) -> onnx.ModelProto:
        nodes = [
            helper.make_node("Transpose", ["a"], ["ta"], perm=[1, 0]),
            helper.make_node("Transpose", ["b"], ["tb"], perm=[1, 0]),
            helper.make_node("Concat", ["ta", "tb", "c"], ["y"], axis=1),
            helper.make_node("Transpose", ["v"], ["z"], perm=[0, 2, 3, 1]),
        ]
        declared = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [3, 5]) for n in "ab"]
        declared.append(helper.make_tensor_value_info("v", TensorProto.FLOAT, [2, 2, 3, 2]))
        constant = np.arange(5 * 3000, dtype=np.float32).reshape(5, 3000)
        graph = helper.make_graph(
            nodes,
            "g",
            declared,
            [
                helper.make_tensor_value_info("y", TensorProto.FLOAT, None),
                helper.make_tensor_value_info("z", TensorProto.FLOAT, dims),
            ],
            [numpy_helper.from_array(constant, "c")],
        )
        opsets = [helper.make_opsetid("", 17)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=8)

    plain, named = (
        relayout.optimize(model(dims), minimize="count", verify=False)
        for dims in ([2, 2, 3, 2], ["P", "Q", "R", "S"])
    )
    assert (plain.before, plain.after) == (named.before, named.after)
    assert named.after.bytes_moved <= named.before.bytes_moved
