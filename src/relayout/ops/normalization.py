"""Operators that normalise by statistics over some of the axes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from relayout.layout.permutation import Permutation
from relayout.layout.transport import Changes, Refusal, Transport
from relayout.ops import axis_maps, rows, shuffles
from relayout.ops import normalization_steps as by_steps
from relayout.ops.facts import CARRIES, KnownLayout, LayoutFacts, OpFacts, Storage
from relayout.ops.kernels import COMPLEX, OPAQUE, KernelFacts, rowwise
from relayout.ops.kind import Kind
from relayout.ops.rule import OpRule, lead_only

if TYPE_CHECKING:
    from relayout.graph.read import NodeView


def batch_normalization(view: NodeView, order: Permutation) -> Transport | Refusal:
    if view.integer("training_mode", 0) or view.results > 1:
        return Refusal("BatchNormalization in training mode takes statistics over its batch")
    if not view.integer("spatial", 1):
        return Refusal("BatchNormalization with spatial=0 has parameters for every place")
    return lead_only(view, order) if order.fixes(1) else by_steps.batch(view, order)


def local_response(view: NodeView, order: Permutation) -> Transport | Refusal:
    if not order.fixes(1):
        return Refusal(f"{view.op_type} takes its channels from axis 1")
    return lead_only(view, order)


def instance_normalization(view: NodeView, order: Permutation) -> Transport | Refusal:
    return lead_only(view, order) if order.fixes(0, 1) else by_steps.instance(view, order)


def group_normalization(view: NodeView, order: Permutation) -> Transport | Refusal:
    if not order.fixes(0, 1):
        return Refusal(f"{view.op_type} takes examples from axis 0 and channels from axis 1")
    return lead_only(view, order)


def trailing(view: NodeView, order: Permutation) -> Transport | Refusal:
    """Statistics over all axes from `axis` on; the parameters have these axes too.

    It is not written as several nodes: one kernel that reads its tensor once would become eight
    nodes, and the two Transposes that this saves cost less.
    """
    axis = view.integer("axis", -1) % order.rank
    if not order.keeps(range(axis, order.rank)):
        last = order.rank - 1
        return Refusal(
            f"{view.op_type} normalises axes {axis} to {last} and this order mixes others in"
        )
    tail = Permutation(tuple(stored - axis for stored in order.axes[axis:]))
    parameters = [_parameter_order(view, index, tail) for index in range(1, view.arity)]
    orders = [given for given in parameters if not isinstance(given, Refusal)]
    refusals = [given for given in parameters if isinstance(given, Refusal)]
    return refusals[0] if refusals else Transport((order, *orders), (order,) * view.results)


def _parameter_order(view: NodeView, index: int, tail: Permutation) -> Permutation | Refusal | None:
    if not view.has(index):
        return None
    rank = view.rank(index)
    if rank == 0 or (tail.is_identity and rank is not None and rank <= tail.rank):
        return None
    if rank != tail.rank:
        return Refusal(f"{view.op_type}'s operand {index} does not have the normalised axes")
    return tail


def mean_variance(view: NodeView, order: Permutation) -> Transport | Refusal:
    given = view.ints("axes")
    axes = (0, 2, 3) if given is None else given
    if not axes:
        return Refusal(f"{view.op_type} names no axes")
    if not all(-order.rank <= axis < order.rank for axis in axes):
        return Refusal(f"{view.op_type} normalises an axis that its operand does not have")
    stored = sorted(order.position(axis) for axis in axes)
    return lead_only(view, order, Changes(attributes={"axes": stored}))


def _batch_kind(view: NodeView) -> Kind:
    """A scale and a shift per channel, except in training."""
    return Kind.OPAQUE if view.integer("training_mode", 0) else Kind.BROADCAST


CHANNELS_FIRST = LayoutFacts(KnownLayout.CHANNELS_FIRST, carries=True)
"""It carries the layout of tensors that have no spatial axes."""

FACTS: tuple[OpFacts, ...] = (
    OpFacts(
        ("BatchNormalization",),
        OpRule(batch_normalization),
        kernel=KernelFacts(_batch_kind),
        layout=LayoutFacts(prefers_channels_first=True, carries=True),
        axes=axis_maps.by_channel,
        shuffles=shuffles.following(shuffles.by_channel),
        storage=Storage.PASSED,
    ),
    OpFacts(("LRN",), OpRule(local_response), kernel=OPAQUE, layout=CHANNELS_FIRST),
    OpFacts(
        ("InstanceNormalization",),
        OpRule(instance_normalization),
        kernel=rowwise(rows.spatial),
        layout=CHANNELS_FIRST,
        axes=axis_maps.by_channel,
    ),
    OpFacts(
        ("GroupNormalization",),
        OpRule(group_normalization),
        kernel=COMPLEX,
        layout=CHANNELS_FIRST,
    ),
    OpFacts(
        ("LayerNormalization", "RMSNormalization"),
        OpRule(trailing),
        kernel=rowwise(rows.trailing),
        layout=CARRIES,
        axes=axis_maps.trailing,
        shuffles=shuffles.following(shuffles.trailing),
    ),
    OpFacts(("MeanVarianceNormalization",), OpRule(mean_variance), kernel=COMPLEX, layout=CARRIES),
)
