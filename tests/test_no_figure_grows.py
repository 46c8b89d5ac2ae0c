"""Unless something is asked for, no figure of a model for target onnx grows, nor does its time."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import relayout
from relayout.optimizer.attempts import SLOWER

ROWS = 17
"""Not a multiple of what products compute at once."""


@pytest.fixture
def turned() -> onnx.ModelProto:
    """A product of columns: without Transposes the weight comes first, and the bias stays alone."""
    random = np.random.default_rng(0)
    weights = {"w": random.random((128, 128), np.float32), "b": random.random(128, np.float32)}
    nodes = [
        helper.make_node("Transpose", ["x"], ["rows"], perm=[0, 2, 1]),
        helper.make_node("MatMul", ["rows", "w"], ["product"]),
        helper.make_node("Add", ["product", "b"], ["sum"]),
        helper.make_node("Transpose", ["sum"], ["y"], perm=[0, 2, 1]),
    ]
    shape = [2, 128, ROWS]
    graph = helper.make_graph(
        nodes,
        "turned",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def test_a_result_that_is_predicted_to_be_slower_is_given_up(turned: onnx.ModelProto) -> None:
    result = relayout.optimize(turned, verify=False)
    assert result.after.nanoseconds <= result.before.nanoseconds
    assert result.after.transposes == 2
    assert SLOWER in {attempt.verdict for attempt in result.attempts}


def test_what_was_given_up_is_offered(turned: onnx.ModelProto) -> None:
    offers = relayout.optimize(turned, verify=False, suggest=True).record().offers
    assert ("--minimize bytes", 0) in {(each.option, each.transposes) for each in offers}


def test_whoever_asks_for_bytes_gets_the_fewest(turned: onnx.ModelProto) -> None:
    result = relayout.optimize(turned, minimize="bytes", verify=False)
    assert result.after.transposes == 0
    assert result.after.nanoseconds > result.before.nanoseconds
