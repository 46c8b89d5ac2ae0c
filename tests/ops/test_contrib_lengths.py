"""Lengths of ONNX Runtime's own operators are those of its results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper

from relayout.graph.io.load import load
from relayout.graph.read import Shape, shape_of
from relayout.ops.lengths.sweep import carry_lengths

FLOAT = onnx.TensorProto.FLOAT
OPSETS = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
CASES: list[tuple[str, list[tuple[int, ...]], dict[str, int]]] = [
    ("FusedMatMul", [(2, 3, 4), (2, 4, 5)], {}),
    ("FusedMatMul", [(2, 4, 3), (4, 5)], {"transA": 1}),
    ("FusedMatMul", [(3, 4), (2, 5, 4)], {"transB": 1}),
    ("FusedMatMul", [(1, 4, 3), (2, 5, 4)], {"transA": 1, "transB": 1}),
    ("FusedMatMul", [(3, 2, 7, 4), (2, 7, 4, 5)], {"transBatchA": 1}),
    ("FusedMatMul", [(2, 7, 3, 4), (4, 2, 7, 5)], {"transBatchB": 1}),
    ("FusedMatMul", [(4, 2, 3), (2, 5, 4)], {"transA": 1, "transBatchA": 1, "transB": 1}),
    ("MultiHeadAttention", [(2, 5, 12), (2, 7, 12), (2, 7, 12)], {"num_heads": 3}),
    ("MultiHeadAttention", [(2, 5, 12), (2, 7, 12), (2, 7, 18)], {"num_heads": 3}),
    ("MultiHeadAttention", [(2, 5, 12), (2, 3, 7, 4), (2, 3, 7, 4)], {"num_heads": 3}),
]


def model_of(
    op_type: str, shapes: Sequence[Shape], attributes: Mapping[str, int]
) -> onnx.ModelProto:
    names = [f"x{index}" for index in range(len(shapes))]
    node = helper.make_node(op_type, names, ["y"], domain="com.microsoft")
    node.attribute.extend(helper.make_attribute(*each) for each in attributes.items())
    inputs = [
        helper.make_tensor_value_info(name, FLOAT, shape)
        for name, shape in zip(names, shapes, strict=True)
    ]
    output = helper.make_tensor_value_info("y", FLOAT, None)
    graph = helper.make_graph([node], "g", inputs, [output])
    return helper.make_model(graph, opset_imports=OPSETS, ir_version=10)


def learned(model: onnx.ModelProto) -> Shape | None:
    loaded = load(model).ir
    carry_lengths(loaded)
    return shape_of(loaded.graph.outputs[0])


@pytest.mark.parametrize(("op_type", "shapes", "attributes"), CASES)
def test_numbers(
    op_type: str, shapes: list[tuple[int, ...]], attributes: Mapping[str, int]
) -> None:
    model = model_of(op_type, shapes, attributes)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    feeds = {f"x{index}": np.ones(shape, np.float32) for index, shape in enumerate(shapes)}
    (found,) = session.run(None, feeds)
    assert learned(model) == found.shape


def test_open_lengths_are_carried() -> None:
    shapes: list[Shape] = [("N", "S", 12), ("N", "L", 12), ("N", "L", 18)]
    model = model_of("MultiHeadAttention", shapes, {"num_heads": 3})
    assert learned(model) == ("N", "S", 18)
    product = model_of("FusedMatMul", [("N", 4, "S"), (1, 4, "L")], {"transA": 1})
    assert learned(product) == ("N", "S", "L")


def test_batches_that_may_differ_stay_open() -> None:
    found = learned(model_of("FusedMatMul", [("N", 3, 4), ("M", 4, 5)], {}))
    assert found is not None
    assert found[0] not in {"N", "M", 1}
    assert found[1:] == (3, 5)
