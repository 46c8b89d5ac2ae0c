"""Operators that single out one axis and keep the rank."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from relayout.graph.read import NodeView, Parameter
from relayout.layout.transport import Changes, Refusal, Transport
from relayout.ops.rule import OpRule, TransportRule, barrier, lead_only

if TYPE_CHECKING:
    from relayout.layout.permutation import Permutation

SCAN_AXIS = Parameter("axis", 1)


class Places(Protocol):
    """Where axes stand now."""

    def position(self, axis: int) -> int: ...


def moved_axis(view: NodeView, order: Places, default: int) -> Changes:
    """The attribute `axis` names the same axis where it is stored now."""
    return Changes(attributes={"axis": order.position(view.integer("axis", default))})


def named_at_run_time(view: NodeView, parameter: Parameter) -> bool:
    """Whether an operand of a known type names axes that only the run will tell."""
    if not parameter.is_operand(view) or not view.has(parameter.index):
        return False
    value = view.node.inputs[parameter.index]
    return view.constant(parameter.index) is None and value is not None and value.dtype is not None


def looked_up(order: Permutation, parameter: Parameter) -> Changes:
    """Axes named at run time are found where they are stored; -1 finds the last entry."""
    return Changes(lookups={parameter.index: order.inverse().axes})


def along_axis(default: int) -> TransportRule:
    """Nothing but the attribute `axis` depends on the order."""

    def transport(view: NodeView, order: Permutation) -> Transport:
        return lead_only(view, order, moved_axis(view, order, default))

    return transport


def all_alike(view: NodeView, order: Permutation, changes: Changes) -> Transport | Refusal:
    """Every operand and every result is stored in `order`."""
    if any(view.rank(index) != order.rank for index in range(view.arity)):
        return Refusal(f"an operand of {view.op_type} is not known to have {order.rank} axes")
    return Transport((order,) * view.arity, (order,) * view.results, changes)


def softmax(view: NodeView, order: Permutation) -> Transport | Refusal:
    """Before opset 13 all axes from `axis` on are taken together, so they must stay the last."""
    if view.version >= 13:
        return lead_only(view, order, moved_axis(view, order, -1))
    if not order.keeps(_flattened(view, order.rank)):
        return Refusal(f"{view.op_type} before opset 13 works on all trailing axes together")
    return lead_only(view, order)


def hardmax(view: NodeView, order: Permutation) -> Transport | Refusal:
    """The first of equal maxima counts, so axes that are taken together keep their order too."""
    if view.version < 13 and not order.fixes(*_flattened(view, order.rank)):
        return Refusal("Hardmax before opset 13 finds the first maximum of all trailing axes")
    return softmax(view, order)


def concat(view: NodeView, order: Permutation) -> Transport | Refusal:
    return all_alike(view, order, moved_axis(view, order, 0))


def cumulative(view: NodeView, order: Permutation) -> Transport | Refusal:
    if named_at_run_time(view, SCAN_AXIS):
        return lead_only(view, order, looked_up(order, SCAN_AXIS))
    axis = SCAN_AXIS.read_ints(view)
    if isinstance(axis, Refusal):
        return axis
    if axis is None or len(axis) != 1:
        return Refusal(f"{view.op_type} names no single axis")
    return lead_only(view, order, SCAN_AXIS.write(view, [order.position(axis[0])]))


def compress(view: NodeView, order: Permutation) -> Transport | Refusal:
    if "axis" not in view.node.attributes:
        return Refusal("Compress without an axis selects in element order")
    return lead_only(view, order, moved_axis(view, order, 0))


def reverse_sequence(view: NodeView, order: Permutation) -> Transport | Refusal:
    if not order.keeps((0, 1)):
        return Refusal("ReverseSequence has its batch and time in the first two axes")
    batch, time = view.integer("batch_axis", 1), view.integer("time_axis", 0)
    moved = {"batch_axis": order.position(batch), "time_axis": order.position(time)}
    return lead_only(view, order, Changes(attributes=moved))


def _flattened(view: NodeView, rank: int) -> range:
    """The axes the softmax family takes together before opset 13."""
    axis = view.integer("axis", 1)
    return range(axis + rank if axis < 0 else axis, rank)


RULES: tuple[OpRule, ...] = (
    OpRule(("LogSoftmax", "Softmax"), softmax),
    OpRule(("Hardmax",), hardmax),
    OpRule(("Concat",), concat),
    OpRule(("Split",), along_axis(0)),
    OpRule(("LpNormalization", "TopK"), along_axis(-1)),
    OpRule(("CumProd", "CumSum"), cumulative),
    OpRule(("Compress",), compress),
    OpRule(("ReverseSequence",), reverse_sequence),
    barrier("Unique", reason="Unique reads its operand in element order"),
)
