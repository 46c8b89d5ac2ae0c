"""Products of one tensor with several constants: one product with the constants side by side."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from relayout.fusion.sketch import SketchOperator
from relayout.graph.read import constant_of

WEIGHT = 1


def are_siblings(operators: Sequence[SketchOperator]) -> bool:
    """Whether all are the same product of the same tensor, but for the number of results."""
    first = operators[0].node
    if any(each.node.inputs[0] is not first.inputs[0] for each in operators):
        return False
    keys = [sibling_key(operator) for operator in operators]
    return keys[0] is not None and all(key == keys[0] for key in keys)


def sibling_key(operator: SketchOperator) -> tuple[object, ...] | None:
    """What siblings have in common; None for an operator that can have none."""
    node = operator.node
    axis = _results_axis(operator)
    weight = constant_of(node.inputs[WEIGHT]) if operator.view.has(WEIGHT) else None
    if axis is None or weight is None or operator.view.unknown_attribute is not None:
        return None
    lengths = list(weight.shape.numpy())
    if axis >= len(lengths):
        return None
    lengths[axis] = 0
    attributes = tuple(
        (name, repr(node.attributes[name].value)) for name in sorted(node.attributes)
    )
    key = (node.op_type, id(node.inputs[0]), attributes, weight.dtype, tuple(lengths))
    return (*key, operator.view.has(2))


def joins_siblings(operator: SketchOperator, anchors: Sequence[SketchOperator]) -> bool:
    """Whether an operator writes the results of siblings side by side, each whole."""
    if len(anchors) < 2 or operator.node.op_type != "Concat" or operator.shape is None:
        return False
    rank = len(operator.shape)
    axis = 1 if anchors[0].node.op_type in {"Conv", "ConvTranspose"} else rank - 1
    if operator.view.integer("axis", 0) % rank != axis:
        return False
    shapes = {anchor.shape for anchor in anchors}
    places = range(len(operator.producers))
    return all(operator.operand_shape(place) in shapes for place in places)


def _results_axis(operator: SketchOperator) -> int | None:
    """The axis of the weight along which results lie."""
    node = operator.node
    if node.domain not in {"", "ai.onnx"}:
        return None
    if node.op_type in {"Conv", "ConvTranspose"}:
        is_whole = operator.view.integer("group", 1) == 1
        return (0 if node.op_type == "Conv" else 1) if is_whole else None
    if node.op_type == "MatMul":
        return 1 if _is_matrix(node) else None
    if node.op_type == "Gemm":
        return 0 if operator.view.integer("transB", 0) else 1
    return None


def _is_matrix(node: ir.Node) -> bool:
    tensor = constant_of(node.inputs[WEIGHT])
    return tensor is not None and len(tensor.shape) == 2
