"""Operators between real and quantised numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import onnx_ir as ir

from relayout.graph.read import is_op, shape_of
from relayout.graph.region import KERNEL_DOMAIN
from relayout.layout.transport import Changes, Refusal, Transport
from relayout.ops.folding import MOVES_ONLY
from relayout.ops.pointwise import PRODUCT, SUM
from relayout.ops.rule import OpRule, lead_only

if TYPE_CHECKING:
    from relayout.graph.read import NodeView
    from relayout.layout.permutation import Permutation

PER_AXIS_VERSION = 13


def quantize(view: NodeView, order: Permutation) -> Transport | Refusal:
    """One scale for the tensor, one per index of an axis, or one per block along an axis."""
    scale = view.shape(1)
    if scale is None:
        return Refusal(f"the rank of {view.op_type}'s scale is unknown")
    axis = view.integer("axis", 1)
    is_axis = view.version >= PER_AXIS_VERSION and -order.rank <= axis < order.rank
    if view.integer("block_size", 0) > 0:
        fits = is_axis and len(scale) == order.rank
        return _blocked(view, order, axis) if fits else _unfit(view)
    if is_axis and len(scale) == 1:
        return lead_only(view, order, Changes({"axis": order.position(axis)}))
    if all(length == 1 for length in scale):
        return lead_only(view, order)
    return _unfit(view)


def _blocked(view: NodeView, order: Permutation, axis: int) -> Transport:
    """The scale and the zero point have the axes of the tensor, so they move like it."""
    inputs = tuple(order if view.has(index) else None for index in range(view.arity))
    return Transport(inputs, (order,), Changes({"axis": order.position(axis)}))


def _unfit(view: NodeView) -> Refusal:
    return Refusal(f"{view.op_type} has a scale that does not fit its axis")


QUANTISERS = frozenset(("DynamicQuantizeLinear", "QuantizeLinear", "QLinearConv", "QLinearMatMul"))
"""Operators that round to a grid."""

SUMS_OF_PRODUCTS = frozenset(("Conv", "ConvTranspose", "Einsum", "Gemm", "MatMul"))
"""Operators whose result depends a little on the order in which they add up."""

UNITS = frozenset(("Conv", "Gemm", "MatMul"))
"""Operators that runtimes join with the quantisers around them, to compute in bytes."""


ACTIVATIONS = ("Clip", "HardSigmoid", "LeakyRelu", "Relu", "Sigmoid", "Tanh")
"""What runtimes apply to the result of a product within the same kernel."""


def has_one_scale(node: ir.Node) -> bool:
    """Whether a quantiser treats every element alike, whatever its place."""
    scale = shape_of(node.inputs[1])
    return scale is not None and all(length == 1 for length in scale)


def without_leading_axes(node: ir.Node, rank: int, fewer: int) -> dict[str, int] | None:
    """The attributes of a quantiser whose operand loses axes in front; None if it cannot."""
    if has_one_scale(node):
        return {}
    scale = shape_of(node.inputs[1])
    axis = node.attributes.get_int("axis", 1) % rank
    is_per_index = scale is not None and len(scale) == 1 and axis >= fewer
    return {"axis": axis - fewer} if is_per_index else None


def breaks_unit(node: ir.Node, changes: Changes) -> bool:
    """Whether runtimes compute a product of quantised factors in bytes, but not as restated."""
    return _is_unit(node, Changes()) and not _is_unit(node, changes)


def _is_unit(node: ir.Node, changes: Changes) -> bool:
    """Runtimes multiply unsigned by signed bytes but not signed by unsigned ones, and take a bias
    only straight from its quantiser; all else is computed in floats.
    """
    given = [value for value in node.inputs if value is not None]
    if node.op_type not in UNITS or any(_quantised_type(value) is None for value in given):
        return False
    if changes.domain == KERNEL_DOMAIN:  # what the target has a kernel for, whatever the numbers
        return True
    operator = PRODUCT if changes.steps else changes.op_type or node.op_type
    if operator not in UNITS or (changes.steps and not _is_biased_product(node, changes)):
        return False
    places = changes.operand_order or range(len(node.inputs))
    operands = [None if place is None else node.inputs[place] for place in places]
    factors = tuple(map(_quantised_type, operands[:2]))
    is_reversed = factors == (ir.DataType.INT8, ir.DataType.UINT8)
    return not changes.unsqueezes and (operator == "Conv" or not is_reversed)


def _is_biased_product(node: ir.Node, changes: Changes) -> bool:
    """ONNX Runtime joins a bias to the product before it where it knows all lengths."""
    lengths = shape_of(node.inputs[0]) or (None,)
    first, *rest = changes.steps
    is_product = first.op_type == PRODUCT and first.operands == (0, 1)
    is_static = all(isinstance(length, int) for length in lengths)
    return is_product and is_static and [step.op_type for step in rest] == [SUM]


def _quantised_type(value: ir.Value | None) -> ir.DataType | None:
    """The type of what a value was before it became real again; runtimes look through moves."""
    maker = None if value is None else value.producer()
    while maker is not None and is_op(maker, *MOVES_ONLY):
        maker = None if maker.inputs[0] is None else maker.inputs[0].producer()
    if maker is None or not is_op(maker, "DequantizeLinear"):
        return None
    stored = maker.inputs[0]
    return None if stored is None else stored.dtype


RULES = (OpRule(("QuantizeLinear", "DequantizeLinear"), quantize),)
