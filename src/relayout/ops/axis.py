"""Operators that single out one axis and keep the rank."""

from __future__ import annotations

from typing import TYPE_CHECKING

from relayout.graph.read import NodeView, Parameter
from relayout.layout.transport import Changes, Refusal, Transport
from relayout.ops import axis_maps, rows, shuffles
from relayout.ops.facts import (
    CARRIES,
    Evaluation,
    InnerCopies,
    LengthFacts,
    NumberFacts,
    OpFacts,
    Storage,
)
from relayout.ops.kernels import INJECTIVE, OPAQUE, KernelFacts, rowwise
from relayout.ops.kind import Kind
from relayout.ops.lengths import entries
from relayout.ops.named_axes import (
    SOFTMAX_OF_ONE_AXIS,
    looked_up,
    moved_axis,
    named_at_run_time,
)
from relayout.ops.rule import OpRule, TransportRule, barrier, lead_only

if TYPE_CHECKING:
    from relayout.layout.permutation import Permutation

SCAN_AXIS = Parameter("axis", 1)


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
    if view.version >= SOFTMAX_OF_ONE_AXIS:
        return lead_only(view, order, moved_axis(view, order, -1))
    if not order.keeps(_flattened(view, order.rank)):
        return Refusal(f"{view.op_type} before opset 13 works on all trailing axes together")
    return lead_only(view, order)


def hardmax(view: NodeView, order: Permutation) -> Transport | Refusal:
    """The first of equal maxima counts, so axes that are taken together keep their order too."""
    if view.version < SOFTMAX_OF_ONE_AXIS and not order.fixes(*_flattened(view, order.rank)):
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


FACTS: tuple[OpFacts, ...] = (
    OpFacts(
        ("LogSoftmax", "Softmax"),
        OpRule(softmax),
        kernel=rowwise(rows.softmax),
        layout=CARRIES,
        axes=axis_maps.softmax,
        shuffles=shuffles.following(shuffles.softmax),
        copies=InnerCopies.SOFTMAX,
    ),
    OpFacts(
        ("Hardmax",),
        OpRule(hardmax),
        kernel=rowwise(rows.softmax),
        layout=CARRIES,
        copies=InnerCopies.SOFTMAX,
    ),
    OpFacts(
        ("Concat",),
        OpRule(concat),
        kernel=INJECTIVE,
        layout=CARRIES,
        axes=axis_maps.concat,
        shuffles=shuffles.ShuffleFacts(shuffles.concat, apart=True),
        lengths=LengthFacts(entries.joined),
        numbers=NumberFacts(Evaluation.MOVES),
        storage=Storage.JOINED,
    ),
    OpFacts(
        ("Split",),
        OpRule(along_axis(0)),
        kernel=KernelFacts(Kind.INJECTIVE, shaping=(1,), has_parts=True),
        layout=CARRIES,
        axes=axis_maps.along(0),
        lengths=LengthFacts(is_shaped_by_constants=True),
        numbers=NumberFacts(Evaluation.MOVES),
        storage=Storage.PART,
    ),
    OpFacts(
        ("LpNormalization",),
        OpRule(along_axis(-1)),
        kernel=rowwise(rows.along(-1)),
        layout=CARRIES,
    ),
    OpFacts(
        ("TopK",),
        OpRule(along_axis(-1)),
        kernel=KernelFacts(Kind.OPAQUE, (1,)),
        layout=CARRIES,
        lengths=LengthFacts(is_shaped_by_constants=True),
    ),
    OpFacts(
        ("CumProd", "CumSum"),
        OpRule(cumulative),
        kernel=KernelFacts(Kind.OPAQUE, (1,)),
        layout=CARRIES,
    ),
    OpFacts(("Compress",), OpRule(compress), kernel=OPAQUE, layout=CARRIES),
    OpFacts(("ReverseSequence",), OpRule(reverse_sequence), kernel=INJECTIVE, layout=CARRIES),
    OpFacts(("Unique",), barrier("Unique reads its operand in element order"), kernel=OPAQUE),
)
