"""Attention as one operator, and as the steps that define it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from relayout.verify.proof.call import NodeCall, Rule
from relayout.verify.proof.frames import Column, combined
from relayout.verify.proof.lengths import Length, quotient, times
from relayout.verify.proof.operators.contractions import SUM, contracted, scaled
from relayout.verify.proof.operators.elementwise import elementwise
from relayout.verify.proof.operators.normalizations import NORMALISED
from relayout.verify.proof.table import NotKnownError, TermTable, TermValue
from relayout.verify.proof.views import reshaped, transposed, unsqueezed

ADD = ("Add", frozenset[object]())


def _standard(call: NodeCall) -> list[TermValue]:
    if any(call.operands[4:]) or any(call.node.output[1:]):
        raise NotKnownError("Attention with a past")
    if call.attribute("is_causal", 0) or call.attribute("softcap", 0.0):
        raise NotKnownError("Attention that is causal or capped")
    query, key, value = (call.operand(i) for i in range(3))
    if query.rank == 3:
        heads, kept = int(call.attribute("q_num_heads")), int(call.attribute("kv_num_heads"))
        query, key, value = (
            _heads(call, one, number)
            for one, number in ((query, heads), (key, kept), (value, kept))
        )
        return [_joined(call, _attended(call, query, key, value, call.optional(3)))]
    return [_attended(call, query, key, value, call.optional(3))]


def _contrib(call: NodeCall) -> list[TermValue]:
    """com.microsoft.MultiHeadAttention with its three operands apart."""
    if any(call.operands[3:5]) or any(call.operands[6:]) or any(call.node.output[1:]):
        raise NotKnownError("MultiHeadAttention with a bias, a padding mask or a past")
    if call.attribute("unidirectional", 0):
        raise NotKnownError("MultiHeadAttention that is causal")
    heads = int(call.attribute("num_heads"))
    query, key, value = (_heads(call, call.operand(i), heads) for i in range(3))
    return [_joined(call, _attended(call, query, key, value, call.optional(5)))]


def _heads(call: NodeCall, value: TermValue, heads: int) -> TermValue:
    """[B,S,H*D] as [B,H,S,D]."""
    if value.rank != 3:
        raise NotKnownError("an attention of other axes")
    batch, length, width = value.shape
    depth = quotient(width, heads)
    if depth is None:
        raise NotKnownError("heads of an open depth")
    return transposed(reshaped(call.table, value, [batch, length, heads, depth]), (0, 2, 1, 3))


def _joined(call: NodeCall, value: TermValue) -> TermValue:
    """[B,H,S,D] as [B,S,H*D]."""
    batch, heads, length, depth = value.shape
    moved = transposed(value, (0, 2, 1, 3))
    return reshaped(call.table, moved, [batch, length, times(heads, depth)])


def _attended(
    call: NodeCall, query: TermValue, key: TermValue, value: TermValue, mask: TermValue | None
) -> TermValue:
    table, depth = call.table, query.shape[3]
    groups = quotient(query.shape[1], key.shape[1])
    if groups != 1:
        raise NotKnownError("an attention of groups")
    scale = call.attribute("scale") or _usual_scale(depth)
    if not table.step("attentions written out"):
        return _whole(table, [query, key, value], mask, scale)
    columns = [Column(((0, i), (1, i))) for i in range(2)]
    columns += [Column(((0, 2),)), Column(((1, 2),)), Column(((0, 3), (1, 3)), SUM, kept=False)]
    scores = scaled(table, contracted(table, [query, key], columns), scale)
    if mask is not None:
        scores = elementwise(table, ADD, [scores, mask], commutative=True)
    along = [Column(((0, d),), NORMALISED if d == 3 else None) for d in range(4)]
    weights = combined(table, ("Softmax",), [scores], along)
    columns = [Column(((0, i), (1, i))) for i in range(2)]
    columns += [Column(((0, 2),)), Column(((1, 3),)), Column(((0, 3), (1, 2)), SUM, kept=False)]
    return contracted(table, [weights, value], columns)


def _whole(
    table: TermTable, operands: list[TermValue], mask: TermValue | None, scale: float
) -> TermValue:
    columns = [Column(((0, i), (1, i), (2, i))) for i in range(2)]
    columns += [Column(((0, 2),)), Column(((2, 3),))]
    columns.append(Column(((1, 2), (2, 2)), "attended", kept=False))
    columns.append(Column(((0, 3), (1, 3)), "scored", kept=False))
    if mask is not None:
        operands = [*operands, unsqueezed(mask, range(4 - mask.rank))]
        for place, axis in ((0, 0), (1, 1), (2, 2), (4, 3)):
            columns[place] = replace(columns[place], dims=(*columns[place].dims, (3, axis)))
    return combined(table, ("attention", scale), operands, columns)


def _usual_scale(depth: Length) -> float:
    if not isinstance(depth, int):
        raise NotKnownError("an attention of open depth")
    return float(np.float32(1 / np.sqrt(depth)))


RULES: dict[tuple[str, str], Rule] = {
    ("", "Attention"): _standard,
    ("com.microsoft", "MultiHeadAttention"): _contrib,
}
