"""What onnx's inference says about one node."""

from __future__ import annotations

from collections.abc import Mapping

import onnx
import onnx_ir as ir
from onnx.checker import ValidationError
from onnx.shape_inference import InferenceError

from relayout.graph.read import schema_of


def inferred_types(
    node: ir.Node, version: int, data: Mapping[str, onnx.TensorProto]
) -> Mapping[str, onnx.TypeProto]:
    """The types of a node's results by their names; `data` are the operands whose values are known.

    Nothing is said about a node that is not valid: its own reader says that better.
    """
    schema = schema_of(node.op_type, version, node.domain)
    operands = [value for value in node.inputs if value is not None]
    if schema is None or any(value.type is None for value in operands):
        return {}
    types = {value.name or "": ir.serde.serialize_value(value).type for value in operands}
    message = ir.serde.serialize_node(node)
    try:
        found = onnx.shape_inference.infer_node_outputs(schema, message, types, dict(data))
    except (InferenceError, ValidationError):
        return {}
    return dict(found)
