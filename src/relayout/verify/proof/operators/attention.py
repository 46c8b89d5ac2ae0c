"""Attention as one operator, and as the steps that define it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np

from relayout.verify.proof.call import NodeCall, Rule
from relayout.verify.proof.frames import Column, combined
from relayout.verify.proof.lengths import Length, quotient, times
from relayout.verify.proof.operators.linear import added
from relayout.verify.proof.operators.shapes import counted
from relayout.verify.proof.operators.truth import is_truth
from relayout.verify.proof.slices import AxisPart, cut_out
from relayout.verify.proof.table import NotKnownError, TermTable, TermValue
from relayout.verify.proof.views import expanded, reshaped, squeezed, transposed, unsqueezed

WRITTEN_OUT = "attentions written out"
CONTRIB = "com.microsoft"
HIDDEN = -10000.0
"""What com.microsoft's operators add to scores that a padding mask hides, unless told otherwise."""


@dataclass(frozen=True)
class _Attention:
    """Q, K and V with axes batch, heads, length, depth; what is added to the scores."""

    query: TermValue
    key: TermValue
    value: TermValue
    biases: tuple[TermValue, ...] = ()
    scale: float = 0.0

    @property
    def factor(self) -> float:
        if self.scale:
            return self.scale
        depth = self.query.shape[3]
        if not isinstance(depth, int):
            raise NotKnownError("an attention of open depth")
        return float(np.float32(1 / np.sqrt(depth)))

    def with_bias(self, bias: TermValue | None) -> _Attention:
        return self if bias is None else replace(self, biases=(*self.biases, bias))


def _standard(call: NodeCall) -> list[TermValue]:
    if call.optional(6) is not None or any(call.node.output[3:]):
        raise NotKnownError("Attention with lengths of keys, or with its scores as a result")
    if call.attribute("softcap", 0.0):
        raise NotKnownError("Attention that is capped")
    if any(call.attribute(f"{side}_window_size", -1) >= 0 for side in ("left", "right")):
        raise NotKnownError("Attention with a window")
    query, key, value = (call.operand(i) for i in range(3))
    joined = query.rank == 3
    if joined:
        heads, kept = int(call.attribute("q_num_heads")), int(call.attribute("kv_num_heads"))
        query = _heads(call, query, heads)
        key, value = (_heads(call, one, kept) for one in (key, value))
    past = call.optional(4)
    key, value = _after(call, past, key), _after(call, call.optional(5), value)
    scale = float(call.attribute("scale", 0.0))
    parts = _Attention(query, _repeated(call, key, query), _repeated(call, value, query), (), scale)
    parts = parts.with_bias(_as_bias(call, parts, call.optional(3)))
    if call.attribute("is_causal", 0):
        parts = parts.with_bias(_causal(call, parts, past, -np.inf))
    result = _attended(call, parts)
    return [_joined(call, result) if joined else result, key, value][: len(call.node.output)]


def _contrib(call: NodeCall) -> list[TermValue]:
    """com.microsoft.MultiHeadAttention."""
    if any(call.node.output[3:]) or any(call.operands[8:]):
        raise NotKnownError("MultiHeadAttention with a cache, or with its scores as a result")
    heads = int(call.attribute("num_heads"))
    query, key, value = _apart(call, heads)
    unidirectional = bool(call.attribute("unidirectional", 0))
    if unidirectional and query.shape[2] != key.shape[2]:
        # In ONNX Runtime the last query sees all keys.
        raise NotKnownError("MultiHeadAttention that hides keys, of which there are more or fewer")
    past = call.optional(6)
    key, value = _after(call, past, key), _after(call, call.optional(7), value)
    parts = _Attention(query, key, value, (), float(call.attribute("scale", 0.0)))
    hidden = float(call.attribute("mask_filter_value", HIDDEN))
    parts = parts.with_bias(_padding(call, call.optional(4), hidden))
    parts = parts.with_bias(call.optional(5))
    if unidirectional:
        parts = parts.with_bias(_causal(call, parts, past, hidden))
    results = [_joined(call, _attended(call, parts)), key, value]
    return results[: len(call.node.output)]


def _packed(call: NodeCall) -> list[TermValue]:
    """com.microsoft.Attention: Q, K and V are products of one operand with one weight."""
    if call.optional(4) is not None or call.optional(6) is not None or any(call.node.output[1:]):
        raise NotKnownError("com.microsoft.Attention with a past")
    if call.attribute("qkv_hidden_sizes") or call.attribute("do_rotary", 0):
        raise NotKnownError("com.microsoft.Attention with heads of several depths, or rotated")
    heads = int(call.attribute("num_heads"))
    whole = call.apply("MatMul", call.operand(0), call.operand(1))
    bias = call.optional(2)
    whole = whole if bias is None else call.apply("Add", whole, bias)
    query, key, value = (_heads(call, one, heads) for one in _thirds(call, whole, 2))
    parts = _Attention(query, key, value, (), float(call.attribute("scale", 0.0)))
    hidden = float(call.attribute("mask_filter_value", HIDDEN))
    parts = parts.with_bias(_padding(call, call.optional(3), hidden)).with_bias(call.optional(5))
    if call.attribute("unidirectional", 0):
        parts = parts.with_bias(_causal(call, parts, None, hidden))
    return [_joined(call, _attended(call, parts))]


def _apart(call: NodeCall, heads: int) -> tuple[TermValue, TermValue, TermValue]:
    """Q, K and V of MultiHeadAttention, which may come packed, with their biases."""
    query, key, value = call.operand(0), call.optional(1), call.optional(2)
    if query.rank == 5:
        packed = [_part(call, query, 3, i) for i in range(3)]
        return _with_biases(call, [transposed(one, (0, 2, 1, 3)) for one in packed], heads)
    if key is not None and key.rank == 5:
        halves = [transposed(_part(call, key, 3, i), (0, 2, 1, 3)) for i in range(2)]
        return _with_biases(call, [_heads(call, query, heads), *halves], heads)
    if key is None or value is None:
        raise NotKnownError("MultiHeadAttention without keys or values")
    sides = [one if one.rank == 4 else _heads(call, one, heads) for one in (query, key, value)]
    return _with_biases(call, sides, heads)


def _with_biases(
    call: NodeCall, sides: Sequence[TermValue], heads: int
) -> tuple[TermValue, TermValue, TermValue]:
    query, key, value = sides
    bias = call.optional(3)
    if bias is None:
        return query, key, value
    form = [heads, 1, query.shape[3]]  # which no third fits if the depths differ
    own = [reshaped(call.table, one, form) for one in _thirds(call, bias, 0)]
    query, key, value = (call.apply("Add", side, one) for side, one in zip(sides, own, strict=True))
    return query, key, value


def _thirds(call: NodeCall, value: TermValue, axis: int) -> list[TermValue]:
    each = quotient(value.shape[axis], 3)
    if not isinstance(each, int):
        raise NotKnownError("an attention of open width")
    return [cut_out(call.table, value, axis, AxisPart(i * each, 1, each)) for i in range(3)]


def _part(call: NodeCall, value: TermValue, axis: int, place: int) -> TermValue:
    one = cut_out(call.table, value, axis, AxisPart(place, 1, 1))
    return squeezed(call.table, one, [axis])


def _after(call: NodeCall, past: TermValue | None, new: TermValue) -> TermValue:
    return new if past is None else call.apply("Concat", past, new, axis=2)


def _repeated(call: NodeCall, value: TermValue, query: TermValue) -> TermValue:
    """Heads of keys or values, each for a group of those of the query."""
    groups = quotient(query.shape[1], value.shape[1])
    if groups == 1:
        return value
    if groups is None:
        raise NotKnownError("an attention of groups of open size")
    batch, kept, length, depth = value.shape
    spread = expanded(call.table, unsqueezed(value, [2]), [batch, kept, groups, length, depth])
    return reshaped(call.table, spread, [batch, times(kept, groups), length, depth])


def _as_bias(call: NodeCall, parts: _Attention, mask: TermValue | None) -> TermValue | None:
    """A mask that is added: truth values hide where they are false."""
    if mask is None:
        return None
    if mask.shape[-1] != parts.key.shape[2]:
        # It is not broadcast along the keys: those it has no place for are hidden.
        raise NotKnownError("Attention with a mask of fewer places than keys")
    if not is_truth(call.table, mask):
        return mask
    return call.apply("Where", mask, call.number(0.0), call.number(-np.inf))


def _padding(call: NodeCall, mask: TermValue | None, hidden: float) -> TermValue | None:
    """A mask of whole numbers, [batch, keys] or [batch, queries, keys], which hides by 0."""
    if mask is None:
        return None
    if mask.rank not in (2, 3):
        raise NotKnownError("a padding mask of lengths")
    array = call.table.arrays.get(mask.term)
    zero = call.constant(np.array(0, np.int32 if array is None else array.dtype))
    shown = call.apply("Greater", mask, zero)
    bias = call.apply("Where", shown, call.number(0.0), call.number(hidden))
    return unsqueezed(bias, [1, 2] if mask.rank == 2 else [1])


def _causal(call: NodeCall, parts: _Attention, past: TermValue | None, hidden: float) -> TermValue:
    """A query sees no key after its own place."""
    queries, keys = parts.query.shape[2], parts.key.shape[2]
    before: Length = 0 if past is None else past.shape[2]
    rows = unsqueezed(counted(call, before, queries), [1])
    seen = call.apply("GreaterOrEqual", rows, unsqueezed(counted(call, 0, keys), [0]))
    return call.apply("Where", seen, call.number(0.0), call.number(hidden))


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


def _attended(call: NodeCall, parts: _Attention) -> TermValue:
    if not call.table.step(WRITTEN_OUT):
        return _whole(call.table, parts)
    across = transposed(parts.key, (0, 1, 3, 2))
    scores = call.apply("MatMul", parts.query, across)
    scores = call.apply("Mul", scores, call.number(parts.factor))
    scores = reduce(lambda one, bias: call.apply("Add", one, bias), parts.biases, scores)
    return call.apply("MatMul", call.apply("Softmax", scores, axis=-1), parts.value)


def _whole(table: TermTable, parts: _Attention) -> TermValue:
    """The operator as it is, where it may not be written out."""
    operands = [parts.query, parts.key, parts.value]
    columns = [Column(((0, i), (1, i), (2, i))) for i in range(2)]
    columns += [Column(((0, 2),)), Column(((2, 3),))]
    columns.append(Column(((1, 2), (2, 2)), "attended", kept=False))
    columns.append(Column(((0, 3), (1, 3)), "scored", kept=False))
    if parts.biases:
        bias = added(table, parts.biases) if parts.biases[1:] else parts.biases[0]
        operands = [*operands, unsqueezed(bias, range(4 - bias.rank))]
        for place, axis in ((0, 0), (1, 1), (2, 2), (4, 3)):
            columns[place] = replace(columns[place], dims=(*columns[place].dims, (3, axis)))
    return combined(table, ("attention", parts.factor), operands, columns)


RULES: dict[tuple[str, str], Rule] = {
    ("", "Attention"): _standard,
    (CONTRIB, "MultiHeadAttention"): _contrib,
    (CONTRIB, "Attention"): _packed,
}
