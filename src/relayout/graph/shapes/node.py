"""What onnx infers for one node."""

from __future__ import annotations

from collections.abc import Mapping

import onnx
import onnx_ir as ir
from onnx.checker import ValidationError
from onnx.shape_inference import InferenceError

from relayout.graph.messages.inferable import make_inferable
from relayout.graph.read import constant_of, is_op, schema_of
from relayout.graph.region import subgraphs_of
from relayout.graph.shapes.old_slices import TRUE_SINCE, UNTRUE_AT


def is_unreadable(node: ir.Node) -> bool:
    """Whether a node cannot be written: it has, or one inside it, what onnx-ir cannot hold."""
    kinds = [attribute.type for attribute in node.attributes.values()]
    if ir.AttributeType.UNDEFINED in kinds:
        return True
    return any(is_unreadable(inner) for graph in subgraphs_of(node) for inner in graph)


def opaque(node: ir.Node) -> onnx.NodeProto:
    """A node of which only operands and results are known."""
    return onnx.NodeProto(
        op_type=node.op_type,
        domain="relayout.opaque",
        input=["" if value is None else value.name or "" for value in node.inputs],
        output=[value.name or "" for value in node.outputs],
    )


def inferred_types(
    node: ir.Node, version: int, data: Mapping[str, onnx.TensorProto]
) -> Mapping[str, onnx.TypeProto]:
    """The types of a node's results by their names; `data` are the operands whose values are known.

    Nothing is inferred for a node that is not valid: whoever uses it reports that better.
    """
    is_old_slice = is_op(node, "Slice") and version == UNTRUE_AT
    schema = schema_of(node.op_type, TRUE_SINCE if is_old_slice else version, node.domain)
    operands = [value for value in node.inputs if value is not None]
    if schema is None or any(value.type is None for value in operands) or is_unreadable(node):
        return {}
    types = {value.name or "": ir.serde.serialize_value(value).type for value in operands}
    message = ir.serde.serialize_node(node)
    make_inferable(message)
    try:
        found = onnx.shape_inference.infer_node_outputs(schema, message, types, dict(data))
    except (InferenceError, ValidationError):
        return {}
    return dict(found)


def inferred_shape(result: ir.Value, version: int) -> ir.Shape | None:
    """The shape that follows from the operands of a result's node."""
    node = result.producer()
    return None if node is None else inferred_shapes(node, version).get(result.name or "")


def inferred_shapes(
    node: ir.Node, version: int, largest: int | None = None
) -> dict[str, ir.Shape | None]:
    """The shapes that follow from the operands of a node of the standard domain.

    Constants of more bytes than `largest` take part with their shape only.
    """
    operands = {value.name or "": value for value in node.inputs if value is not None}
    data = {
        name: ir.serde.serialize_tensor(tensor)
        for name, value in operands.items()
        if (tensor := constant_of(value)) is not None
        and (largest is None or tensor.nbytes <= largest)
    }
    return {
        name: ir.serde.deserialize_type_proto_for_shape(found)
        for name, found in inferred_types(node, version, data).items()
    }
