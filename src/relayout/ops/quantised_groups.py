"""Groups of a product and the quantisers around it, which runtimes compute in bytes."""

from __future__ import annotations

import onnx_ir as ir

from relayout.graph.read import is_op, shape_of
from relayout.graph.region import KERNEL_DOMAIN, regions_of
from relayout.layout.transport import AS_GIVEN, Changes
from relayout.ops.facts import Evaluation
from relayout.ops.pointwise import PRODUCT, SUM
from relayout.ops.registry import facts_named, facts_of


def has_quantised_groups(model: ir.Model) -> bool:
    """Whether anything in a model is dequantised, so that runtimes look for such groups."""
    return any(
        is_op(node, "DequantizeLinear") for region in regions_of(model) for node in region.graph
    )


def breaks_quantised_group(node: ir.Node, changes: Changes) -> bool:
    """Whether runtimes compute a product in bytes with its quantisers, but not as restated."""
    return _is_group(node, AS_GIVEN) and not _is_group(node, changes)


def _is_group(node: ir.Node, changes: Changes) -> bool:
    """Whether a product, changed like this, is computed in bytes.

    Runtimes multiply unsigned by signed bytes but not signed by unsigned ones, and take a bias only
    straight from its quantiser; all else is computed in floats.
    """
    given = [value for value in node.inputs if value is not None]
    is_product = facts_of(node).numbers.joins_quantisers
    if not is_product or any(_quantised_type(value) is None for value in given):
        return False
    if changes.domain == KERNEL_DOMAIN:  # what the target has a kernel for, whatever the numbers
        return True
    operator = PRODUCT if changes.steps else changes.op_type or node.op_type
    if not _joins(operator) or (changes.steps and not _is_biased_product(node, changes)):
        return False
    places = changes.operand_order or range(len(node.inputs))
    operands = [None if place is None else node.inputs[place] for place in places]
    factors = tuple(map(_quantised_type, operands[:2]))
    is_reversed = factors == (ir.DataType.INT8, ir.DataType.UINT8)
    return not changes.unsqueezes and (operator == "Conv" or not is_reversed)


def _joins(operator: str) -> bool:
    return facts_named("", operator).numbers.joins_quantisers


def _moves_only(node: ir.Node) -> bool:
    return facts_of(node).numbers.evaluation is Evaluation.MOVES


def _is_biased_product(node: ir.Node, changes: Changes) -> bool:
    """ONNX Runtime joins a bias to the product before it where it knows all lengths."""
    lengths = shape_of(node.inputs[0]) or (None,)
    first, *rest = changes.steps
    is_product = first.op_type == PRODUCT and first.operands == (0, 1)
    is_static = all(isinstance(length, int) for length in lengths)
    return is_product and is_static and [step.op_type for step in rest] == [SUM]


def _quantised_type(value: ir.Value | None) -> ir.DataType | None:
    """The type that a value had before it was dequantised; runtimes look through moves."""
    maker = None if value is None else value.producer()
    while maker is not None and _moves_only(maker):
        maker = None if maker.inputs[0] is None else maker.inputs[0].producer()
    if maker is None or not is_op(maker, "DequantizeLinear"):
        return None
    stored = maker.inputs[0]
    return None if stored is None else stored.dtype
