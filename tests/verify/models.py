"""Small model files for the tests of verification."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

FLOAT = TensorProto.FLOAT
Value = onnx.ValueInfoProto


def tensor(name: str, shape: Sequence[int | str | None] | None, element: int = FLOAT) -> Value:
    return helper.make_tensor_value_info(name, element, shape)


def node(op_type: str, inputs: Sequence[str], outputs: Sequence[str], **attributes: Any) -> Any:
    return helper.make_node(op_type, inputs, outputs, **attributes)


def constant(name: str, value: Any, dtype: Any = np.float32) -> onnx.TensorProto:
    return numpy_helper.from_array(np.asarray(value, dtype), name)


def save(
    path: Path,
    nodes: Sequence[Any],
    inputs: Sequence[Value],
    outputs: Sequence[Value],
    constants: Sequence[onnx.TensorProto] = (),
    *,
    opset: int = 17,
    ir_version: int = 8,
) -> Path:
    graph = helper.make_graph(nodes, "g", inputs, outputs, constants)
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("strange", 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=ir_version), path)
    return path


def one_node(
    path: Path, op_type: str, shape: Sequence[int | str | None] = (2, 3), **attributes: Any
) -> Path:
    """A model y = op(x) of float tensors of one shape."""
    made = node(op_type, ["x"], ["y"], **attributes)
    return save(path, [made], [tensor("x", shape)], [tensor("y", shape)])


def plus(path: Path, offset: Any, shape: Sequence[int | str | None] = (2, 3)) -> Path:
    """A model y = x + offset."""
    add = node("Add", ["x", "b"], ["y"])
    return save(path, [add], [tensor("x", shape)], [tensor("y", shape)], [constant("b", offset)])
