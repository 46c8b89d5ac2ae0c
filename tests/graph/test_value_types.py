"""Types that many values have are read once."""

from __future__ import annotations

import onnx
import onnx_ir as ir
from onnx import TensorProto, helper

from relayout.graph.io.load import load
from relayout.graph.io.value_types import ValueTypes
from tests.graph.makers import model, node, value


def chain(length: int) -> onnx.ModelProto:
    nodes = [node("Relu", f"v{i}" if i else "x", f"v{i + 1}") for i in range(length)]
    return model(nodes, outputs=[value(f"v{length}")])


def test_values_of_one_type_share_it() -> None:
    graph = load(chain(4)).ir.graph
    inner = [item.outputs[0] for item in graph][:-1]
    assert inner[0].shape == graph.inputs[0].shape
    assert all(each.shape is inner[0].shape for each in inner)
    assert all(each.dtype is ir.DataType.FLOAT for each in inner)


def test_what_else_is_recorded_of_a_value_is_read_with_it() -> None:
    message = chain(3)
    described = helper.make_tensor_value_info("v1", TensorProto.FLOAT, [2], doc_string="first")
    message.graph.value_info.extend(
        [described, helper.make_tensor_value_info("v2", TensorProto.INT64, ["n"])]
    )
    types = ValueTypes(message.graph)
    assert [each.name for each in message.graph.value_info] == ["v1"]
    graph = ir.from_proto(message).graph
    types.give(graph)
    first, second = (item.outputs[0] for item in list(graph)[:2])
    assert (first.doc_string, first.dtype, str(first.shape)) == ("first", ir.DataType.FLOAT, "[2]")
    assert (second.doc_string, second.dtype, str(second.shape)) == (None, ir.DataType.INT64, "[n]")
