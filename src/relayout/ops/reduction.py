"""Operators that reduce axes, and so may drop them."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TypeAlias

from relayout.graph.read import NodeView
from relayout.layout.permutation import Permutation
from relayout.layout.transport import Changes, Refusal, Transport
from relayout.ops import axis_maps, rows, shuffles
from relayout.ops.facts import CARRIES, Evaluation, NumberFacts, OpFacts
from relayout.ops.kernels import KernelFacts, Role, RowsRule
from relayout.ops.kind import Kind
from relayout.ops.named_axes import (
    AXES,
    keeps_axes,
    looked_up,
    moved_axis,
    named_at_run_time,
    reduced_axes,
)
from relayout.ops.rule import OpRule, PullRule, lead_only

AxesOf: TypeAlias = Callable[[NodeView, int], tuple[int, ...] | Refusal]
"""The axes, counted from 0, that a node reduces in an operand of this rank."""


def searched_axis(view: NodeView, rank: int) -> tuple[int, ...]:
    return (view.integer("axis", 0) % rank,)


def reduce(view: NodeView, order: Permutation) -> Transport | Refusal:
    if keeps_axes(view) and named_at_run_time(view, AXES):
        return lead_only(view, order, looked_up(order, AXES))
    axes = reduced_axes(view, order.rank)
    if isinstance(axes, Refusal):
        return axes
    if len(axes) in {0, order.rank}:
        return _reduced(view, order, axes, Changes())
    return _reduced(view, order, axes, AXES.write(view, sorted(map(order.position, axes))))


def search(view: NodeView, order: Permutation) -> Transport:
    """The index found counts along its axis, so it stays as it is."""
    return _reduced(view, order, searched_axis(view, order.rank), moved_axis(view, order, 0))


def pull_reduced(axes_of: AxesOf) -> PullRule:
    """The lead operand is stored like the result, with the dropped axes put back."""

    def pull(view: NodeView, result: Permutation) -> Permutation | Refusal:
        rank = view.rank(0)
        if rank is None:
            return Refusal(f"the rank of {view.op_type}'s operand 0 is unknown")
        dropped = () if keeps_axes(view) else axes_of(view, rank)
        if isinstance(dropped, Refusal):
            return dropped
        if result.rank + len(dropped) != rank:
            return Refusal(f"the result of {view.op_type} does not have {result.rank} axes")
        return restored(result, dropped)

    return pull


def restored(result: Permutation, axes: Collection[int]) -> Permutation:
    """An order that becomes `result` when source `axes` vanish.

    Each of them is stored right after the axis that precedes it in the source.
    """
    rank = result.rank + len(axes)
    kept = [axis for axis in range(rank) if axis not in axes]
    stored = list(result.reorder(kept))
    for axis in sorted(axes):
        stored.insert(stored.index(axis - 1) + 1 if axis else 0, axis)
    return Permutation(tuple(stored))


def _reduced(
    view: NodeView, order: Permutation, axes: tuple[int, ...], changes: Changes
) -> Transport:
    result = order if keeps_axes(view) else order.drop(axes)
    return Transport((order, *(None,) * (view.arity - 1)), (result,), changes)


def reducing(
    rows_of: RowsRule, *, kind: Kind = Kind.REDUCTION, shaping: tuple[int, ...] = ()
) -> KernelFacts:
    """A kernel that gives one element for each row."""
    return KernelFacts(kind, shaping=shaping, role=Role.REDUCTION, rows=rows_of)


def _reduction(*op_types: str, numbers: NumberFacts | None = None) -> OpFacts:
    return OpFacts(
        op_types,
        OpRule(reduce, pull_reduced(reduced_axes)),
        kernel=reducing(rows.reduced, shaping=(1,)),
        layout=CARRIES,
        axes=axis_maps.reduced,
        shuffles=shuffles.following(shuffles.reduced),
        numbers=numbers or NumberFacts(),
    )


REDUCTIONS = (
    _reduction(
        *("ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean"),
        *("ReduceMin", "ReduceSum", "ReduceSumSquare"),
    ),
    _reduction("ReduceProd", numbers=NumberFacts(Evaluation.INTEGERS)),
)

FACTS: tuple[OpFacts, ...] = (
    *REDUCTIONS,
    OpFacts(
        ("ArgMax", "ArgMin"),
        OpRule(search, pull_reduced(searched_axis)),
        kernel=reducing(rows.along(0)),
        layout=CARRIES,
    ),
)
