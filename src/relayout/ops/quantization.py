"""Operators between real and quantised numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from relayout.graph.read import shape_of
from relayout.layout.transport import Changes, Refusal, Transport
from relayout.ops import axis_maps, shuffles
from relayout.ops.facts import CARRIES, NumberFacts, OpFacts
from relayout.ops.kernels import ELEMENTWISE
from relayout.ops.named_axes import SCALES_PER_AXIS
from relayout.ops.rule import OpRule, lead_only

if TYPE_CHECKING:
    import onnx_ir as ir

    from relayout.graph.read import NodeView
    from relayout.layout.permutation import Permutation


def quantize(view: NodeView, order: Permutation) -> Transport | Refusal:
    """One scale for the tensor, one per index of an axis, or one per block along an axis."""
    scale = view.shape(1)
    if scale is None:
        return Refusal(f"the rank of {view.op_type}'s scale is unknown")
    axis = view.integer("axis", 1)
    is_axis = view.version >= SCALES_PER_AXIS and -order.rank <= axis < order.rank
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


def _quantiser(op_type: str, *, quantises: bool) -> OpFacts:
    return OpFacts(
        (op_type,),
        OpRule(quantize),
        kernel=ELEMENTWISE,
        layout=CARRIES,
        axes=axis_maps.quantized,
        shuffles=shuffles.following(shuffles.quantized),
        numbers=NumberFacts(quantises=quantises),
    )


FACTS = (
    _quantiser("QuantizeLinear", quantises=True),
    _quantiser("DequantizeLinear", quantises=False),
)
