"""Operators that weigh each element against all others along some axes."""

from __future__ import annotations

from collections.abc import Sequence

from relayout.verify.proof.call import NodeCall, Rule
from relayout.verify.proof.frames import Column, combined
from relayout.verify.proof.lengths import quotient
from relayout.verify.proof.table import NotKnownError, TermValue
from relayout.verify.proof.views import reshaped

NORMALISED = "normalised"
LAST_OF_ONE_AXIS = 13
"""From this version on Softmax works along one axis; before, along all from one on."""


def _softmax(call: NodeCall) -> list[TermValue]:
    value = call.operand(0)
    new = call.since >= LAST_OF_ONE_AXIS
    axis = call.axis("axis", -1 if new else 1, value.rank)
    along = {axis} if new else set(range(axis, value.rank))
    columns = [Column(((0, d),), NORMALISED if d in along else None) for d in range(value.rank)]
    return [combined(call.table, (call.node.op_type,), [value], columns)]


def one_result(call: NodeCall) -> None:
    if any(call.node.output[1:]):
        raise NotKnownError(f"{call.node.op_type} with statistics")


def layer(call: NodeCall) -> list[TermValue]:
    operands = call.present()
    rank = operands[0].rank
    axis = call.axis("axis", -1, rank)
    columns = []
    for d in range(rank):
        places = ((i, d - rank + value.rank) for i, value in enumerate(operands))
        dims = tuple(place for place in places if place[1] >= 0)
        columns.append(Column(dims, NORMALISED if d >= axis else None))
    return [combined(call.table, (call.node.op_type, call.settings("axis")), operands, columns)]


def _per_channel(call: NodeCall, operands: Sequence[TermValue]) -> TermValue:
    """Normalised over all axes from the third on; the second has its own scale and bias."""
    rank = operands[0].rank
    columns = [Column(((0, 0),)), Column(((0, 1), *((i, 0) for i in range(1, len(operands)))))]
    columns += [Column(((0, d),), NORMALISED) for d in range(2, rank)]
    key = ("InstanceNormalization", call.settings("num_groups"))
    return combined(call.table, key, operands, columns)


def _instance(call: NodeCall) -> list[TermValue]:
    return [_per_channel(call, call.present())]


def _group(call: NodeCall) -> list[TermValue]:
    if call.since < 21:
        raise NotKnownError("GroupNormalization with a scale a group")
    value, scale, bias = call.present()
    groups = int(call.attribute("num_groups"))
    each = quotient(value.shape[1], groups)
    if each is None:
        raise NotKnownError("groups of an open number of channels")
    shape = value.shape
    split = reshaped(call.table, value, [shape[0], groups, each, *shape[2:]])
    factors = [reshaped(call.table, one, [groups, each]) for one in (scale, bias)]
    columns = [Column(((0, 0),)), Column(((0, 1), (1, 0), (2, 0)))]
    columns.append(Column(((0, 2), (1, 1), (2, 1)), NORMALISED))
    columns += [Column(((0, d + 1),), NORMALISED) for d in range(2, value.rank)]
    key = ("InstanceNormalization", call.settings("num_groups"))
    result = combined(call.table, key, [split, *factors], columns)
    return [reshaped(call.table, result, shape)]


def _lp(call: NodeCall) -> list[TermValue]:
    value = call.operand(0)
    axis = call.axis("axis", -1, value.rank)
    columns = [Column(((0, d),), NORMALISED if d == axis else None) for d in range(value.rank)]
    return [combined(call.table, (call.node.op_type, call.settings("axis")), [value], columns)]


def _mean_variance(call: NodeCall) -> list[TermValue]:
    value = call.operand(0)
    axes = {axis % value.rank for axis in call.attribute("axes", (0, 2, 3))}
    columns = [Column(((0, d),), NORMALISED if d in axes else None) for d in range(value.rank)]
    return [combined(call.table, (call.node.op_type,), [value], columns)]


def _local_response(call: NodeCall) -> list[TermValue]:
    value = call.operand(0)
    columns = [
        Column(((0, d),), "neighbours", ordered=True) if d == 1 else Column(((0, d),))
        for d in range(value.rank)
    ]
    return [combined(call.table, ("LRN", call.settings()), [value], columns)]


RULES: dict[tuple[str, str], Rule] = {
    ("", "Softmax"): _softmax,
    ("", "LogSoftmax"): _softmax,
    ("", "InstanceNormalization"): _instance,
    ("", "GroupNormalization"): _group,
    ("", "LpNormalization"): _lp,
    ("", "MeanVarianceNormalization"): _mean_variance,
    ("", "LRN"): _local_response,
}
