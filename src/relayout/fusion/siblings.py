"""Products of one tensor with several constants: one product with the constants side by side."""

from __future__ import annotations

from collections.abc import Sequence

from relayout.fusion.sketch import SketchOperator
from relayout.graph.read import constant_of
from relayout.ops.registry import facts_of

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
    axis = rank - 1 if facts_of(anchors[0].node).layout.weight is None else 1
    if operator.view.integer("axis", 0) % rank != axis:
        return False
    shapes = {anchor.shape for anchor in anchors}
    places = range(len(operator.producers))
    return all(operator.operand_shape(place) in shapes for place in places)


def _results_axis(operator: SketchOperator) -> int | None:
    """The axis of the weight along which results lie."""
    kernel = facts_of(operator.node).kernel
    rule = None if kernel is None else kernel.weight_results
    return None if rule is None else rule(operator.view)
