"""Operators that gather a window, or all, of the spatial axes after batch and channels."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from relayout.layout.transport import Changes, Refusal, Transport
from relayout.ops import rows
from relayout.ops.convolution import spatial_changes
from relayout.ops.facts import CHANNELS_FIRST, LayoutFacts, OpFacts, Storage
from relayout.ops.kernels import COMPLEX, INJECTIVE, OPAQUE, KernelFacts, window
from relayout.ops.kind import Kind
from relayout.ops.reduction import reducing
from relayout.ops.rule import OpRule, barrier, lead_only

if TYPE_CHECKING:
    from relayout.graph.read import NodeView
    from relayout.layout.permutation import Permutation

OPERAND_AXES_SINCE = 18
"""From this opset on ReduceMax, ReduceMean, ReduceL1 and ReduceL2 take their axes as an operand."""


def pool(view: NodeView, order: Permutation) -> Transport | Refusal:
    """A pool treats batch and channels alike, so these two may change places."""
    if not order.keeps((0, 1)):
        return Refusal(f"{view.op_type} pools every axis after the first two")
    if view.uses_result(1):
        return Refusal(f"{view.op_type} gives places counted through the whole tensor")
    changes = spatial_changes(view, order)
    return changes if isinstance(changes, Refusal) else lead_only(view, order, changes)


def global_pool(view: NodeView, order: Permutation) -> Transport | Refusal:
    """The pool itself where the spatial axes stay last, else a reduction of where they are."""
    if order.keeps((0, 1)):
        return lead_only(view, order)
    reduction = _reduction(view)
    if isinstance(reduction, Refusal):
        return reduction
    if order.rank == 2:
        return Refusal(f"{view.op_type} has no spatial axis")
    axes = sorted(order.position(axis) for axis in range(2, order.rank))
    as_reduction = Changes(attributes={"p": None, "keepdims": 1}, op_type=reduction)
    return lead_only(view, order, as_reduction | _axes(view, axes))


def _reduction(view: NodeView) -> str | Refusal:
    if view.op_type != "GlobalLpPool":
        return {"GlobalAveragePool": "ReduceMean", "GlobalMaxPool": "ReduceMax"}[view.op_type]
    power = view.integer("p", 2)
    if power not in {1, 2}:
        return Refusal(f"no reduction takes the norm of GlobalLpPool with p={power}")
    return f"ReduceL{power}"


def _axes(view: NodeView, axes: list[int]) -> Changes:
    if view.version < OPERAND_AXES_SINCE:
        return Changes(attributes={"axes": axes})
    return Changes(constants={1: np.asarray(axes, np.int64)})


ONE_OPERAND = window(0)
SAMPLED = barrier("a sampling grid names the spatial axes by the columns of its last axis")

FACTS: tuple[OpFacts, ...] = (
    OpFacts(
        ("MaxPool", "AveragePool"),
        OpRule(pool),
        kernel=ONE_OPERAND,
        layout=CHANNELS_FIRST,
        storage=Storage.POOLED,
    ),
    OpFacts(("LpPool",), OpRule(pool), kernel=ONE_OPERAND, layout=CHANNELS_FIRST),
    OpFacts(
        ("GlobalAveragePool", "GlobalMaxPool"),
        OpRule(global_pool),
        kernel=reducing(rows.spatial, kind=Kind.COMPLEX),
        layout=CHANNELS_FIRST,
        storage=Storage.PASSED,
    ),
    OpFacts(("GlobalLpPool",), OpRule(global_pool), kernel=COMPLEX, layout=CHANNELS_FIRST),
    OpFacts(
        ("MaxUnpool",),
        barrier("MaxUnpool reads places counted through the whole tensor"),
        kernel=OPAQUE,
    ),
    OpFacts(
        ("MaxRoiPool", "RoiAlign"),
        barrier("regions of interest name the last two axes by their coordinates x and y"),
        kernel=COMPLEX,
    ),
    OpFacts(
        ("GridSample",),
        SAMPLED,
        kernel=INJECTIVE,
        layout=LayoutFacts(prefers_channels_first=True),
    ),
    OpFacts(("AffineGrid",), SAMPLED, kernel=KernelFacts(Kind.INJECTIVE, shaping=(1,))),
)
