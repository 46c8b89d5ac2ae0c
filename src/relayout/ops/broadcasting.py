"""Operators whose operands are broadcast to one shape."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from relayout.layout.permutation import Permutation
from relayout.layout.transport import Changes, Refusal, Transport
from relayout.ops import axis_maps
from relayout.ops.facts import (
    CARRIES,
    AxesRule,
    EntriesRule,
    Evaluation,
    LengthFacts,
    NumberFacts,
    OpFacts,
)
from relayout.ops.kernels import BROADCAST, OPAQUE, KernelFacts
from relayout.ops.kind import Kind
from relayout.ops.lengths import entries
from relayout.ops.rule import OpRule

if TYPE_CHECKING:
    from relayout.graph.read import NodeView


def aligned(rank: int, order: Permutation) -> tuple[Permutation, tuple[int, ...]]:
    """How an operand of lower rank lines up with one stored in `order`.

    Its own order, and where it then needs axes of length 1. Broadcasting aligns to the right, so
    axes in front are never needed: the [C] of an NHWC tensor becomes [C, 1, 1] next to NCHW.
    """
    missing = order.rank - rank
    own = [axis - missing for axis in order]
    while own and own[0] < 0:
        own.pop(0)
    unit_axes = tuple(position for position, axis in enumerate(own) if axis < 0)
    return Permutation(tuple(axis for axis in own if axis >= 0)), unit_axes


def widest_operand(view: NodeView) -> int:
    """The first operand that has every axis of the result."""
    ranks = [view.rank(index) or 0 for index in range(view.arity)]
    return ranks.index(max(ranks))


def broadcast(view: NodeView, order: Permutation) -> Transport | Refusal:
    ranks = [view.rank(index) for index in range(view.arity)]
    known = [rank for rank in ranks if rank is not None]
    if len(known) < view.arity:
        return Refusal(f"the rank of {view.op_type}'s operand {ranks.index(None)} is unknown")
    places = [aligned(rank, order) for rank in known]
    inputs = tuple(None if own.is_identity else own for own, _ in places)
    unsqueezes = {index: unit_axes for index, (_, unit_axes) in enumerate(places) if unit_axes}
    return Transport(inputs, (order,), Changes(unsqueezes=unsqueezes))


def pull_broadcast(view: NodeView, result: Permutation) -> Permutation | Refusal:
    """The widest operand is stored like the result."""
    if view.rank(widest_operand(view)) != result.rank:
        return Refusal(f"{view.op_type} has no operand of {result.rank} axes")
    return result


def expand(view: NodeView, order: Permutation) -> Transport | Refusal:
    """New axes stay in front; the target shape follows the axes of the result."""
    length = _target_length(view)
    if isinstance(length, Refusal):
        return length
    result = order.insert(range(length - order.rank))
    changes = _moved_target(view, *aligned(length, result))
    if isinstance(changes, Refusal):
        return changes
    return Transport((order, None), (result,), changes)


def pull_expand(view: NodeView, result: Permutation) -> Permutation | Refusal:
    rank, length = view.rank(0), _target_length(view)
    if isinstance(length, Refusal):
        return length
    if rank is None or max(rank, length) != result.rank:
        return Refusal(f"the result of Expand is not known to have {result.rank} axes")
    new = range(length - rank)
    if not result.fixes(*new):
        return Refusal("Expand puts new axes in front")
    return result.drop(new)


def _target_length(view: NodeView) -> int | Refusal:
    target = view.constant(1)
    shape = view.shape(1) if target is None else target.shape
    if shape is None or len(shape) != 1 or not isinstance(shape[0], int):
        return Refusal("the length of Expand's target shape is unknown")
    return shape[0]


def _moved_target(
    view: NodeView, own: Permutation, unit_axes: tuple[int, ...]
) -> Changes | Refusal:
    target = view.constant(1)
    if target is not None:
        lengths = list(own.reorder(target.tolist()))
        for position in unit_axes:
            lengths.insert(position, 1)
        return Changes(constants={1: np.asarray(lengths, target.dtype)})
    if unit_axes:
        return Refusal("Expand gets a target shape with fewer axes than its operand at run time")
    return Changes() if own.is_identity else Changes(gathers={1: own.axes})


def each_operand(view: NodeView) -> range:
    return range(view.arity)


def broadcasting(
    *op_types: str,
    domain: str = "",
    kernel: KernelFacts = BROADCAST,
    axes: AxesRule | None = axis_maps.broadcast,
    lengths: LengthFacts | None = None,
    evaluation: Evaluation | None = None,
) -> OpFacts:
    """Operators that combine the elements of the same place of operands broadcast to one shape."""
    return OpFacts(
        op_types,
        OpRule(broadcast, pull_broadcast, widest_operand),
        domain,
        kernel,
        CARRIES,
        axes,
        lengths or LengthFacts(broadcast=each_operand),
        NumberFacts(evaluation),
    )


def _computing(rule: EntriesRule) -> LengthFacts:
    return LengthFacts(rule, broadcast=each_operand)


COSTLY = KernelFacts(Kind.BROADCAST, is_costly=True)
INFERRED = LengthFacts()
"""Left to onnx's inference."""

FACTS: tuple[OpFacts, ...] = (
    broadcasting("Add", lengths=_computing(entries.total), evaluation=Evaluation.INTEGERS),
    broadcasting("Sub", lengths=_computing(entries.difference), evaluation=Evaluation.INTEGERS),
    broadcasting("Mul", lengths=_computing(entries.multiplied), evaluation=Evaluation.INTEGERS),
    broadcasting(
        "Div",
        kernel=COSTLY,
        lengths=_computing(entries.quotient),
        evaluation=Evaluation.NATURALS,
    ),
    broadcasting("Equal", lengths=_computing(entries.equal), evaluation=Evaluation.INTEGERS),
    broadcasting("Where", lengths=_computing(entries.selected), evaluation=Evaluation.MOVES),
    broadcasting("Max", "Min", evaluation=Evaluation.INTEGERS),
    broadcasting(
        *("And", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Or"),
        evaluation=Evaluation.INTEGERS,
    ),
    broadcasting("Pow", kernel=COSTLY),
    broadcasting("Mod", kernel=COSTLY, lengths=INFERRED, evaluation=Evaluation.INTEGERS),
    broadcasting(
        *("BitShift", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Xor"),
        lengths=INFERRED,
        evaluation=Evaluation.INTEGERS,
    ),
    broadcasting("Mean", "PRelu", "Sum", lengths=INFERRED),
    broadcasting(
        "SwiGLU",
        kernel=KernelFacts(Kind.ELEMENTWISE, is_costly=True),
        axes=None,
        lengths=INFERRED,
    ),
    broadcasting("StringConcat", kernel=OPAQUE, axes=None, lengths=INFERRED),
    OpFacts(
        ("Expand",),
        OpRule(expand, pull_expand),
        kernel=KernelFacts(Kind.BROADCAST, shaping=(1,), is_exact=True),
        axes=axis_maps.expanded,
        lengths=LengthFacts(expands_to=1, is_shaped_by_constants=True),
        numbers=NumberFacts(Evaluation.MOVES),
    ),
)
