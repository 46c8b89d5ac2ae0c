"""Attention of the standard: softmax(scale * Q K^T + mask) V."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from relayout.verify.field.definitions import defined
from relayout.verify.field.operators.activation import function, softmax
from relayout.verify.field.residues import (
    NEGATIVE_INFINITY,
    added,
    divided,
    encoded,
    multiplied,
)
from relayout.verify.field.values import UnknownError

if TYPE_CHECKING:
    from relayout.verify.field.call import Computed, FieldCall, FieldKernel
    from relayout.verify.field.residues import Residues
    from relayout.verify.field.values import FieldTensor


@dataclass(frozen=True, slots=True)
class HeadsApart:
    """Q, K and V with axes batch, heads, length, depth."""

    query: Residues
    key: Residues
    value: Residues


def apart(numbers: Residues, heads: int) -> Residues:
    """Three axes with heads side by side as four."""
    batch, length, width = numbers.shape
    return numbers.reshape(batch, length, heads, width // heads).transpose(0, 2, 1, 3)


def together(numbers: Residues) -> Residues:
    batch, heads, length, depth = numbers.shape
    return numbers.transpose(0, 2, 1, 3).reshape(batch, length, heads * depth)


def scale_of(call: FieldCall, depth: int) -> int:
    """The scale as stated, else 1 / sqrt(depth) as a float32."""
    stated = call.number("scale", 0.0)
    return int(encoded(np.array(stated or 1 / math.sqrt(depth), np.float32)))


def scores(call: FieldCall, heads: HeadsApart) -> Residues:
    product = call.product(heads.query, heads.key.swapaxes(-1, -2))
    return multiplied(product, scale_of(call, heads.query.shape[-1]))


def as_bias(mask: FieldTensor) -> Residues:
    """A mask that is added: truth values forbid where they are false."""
    if mask.is_float:
        return mask.residues()
    if not mask.is_true:
        raise UnknownError("a mask that is computed from floats")
    return np.where(mask.data, 0, NEGATIVE_INFINITY)


def causal_bias(queries: int, keys: int, past: int = 0) -> Residues:
    """A query sees no key after its own place."""
    allowed = np.tril(np.ones((queries, keys), bool), past)
    return np.where(allowed, 0, NEGATIVE_INFINITY).astype(np.int64)


def repeated(numbers: Residues, heads: int) -> Residues:
    """Heads of keys and values, each for a group of those of the query."""
    return np.repeat(numbers, heads // numbers.shape[1], 1)


def attention(call: FieldCall) -> Computed:
    if call.has(6) or call.results > 3:
        by_body = defined(call)
        if by_body is None:
            raise UnknownError("with lengths of keys, or with its scores as a result")
        return by_body
    query, key, value = (call.residues(i) for i in range(3))
    joined = query.ndim == 3
    if joined:
        kept = call.integer("kv_num_heads", 1)
        query = apart(query, call.integer("q_num_heads", 1))
        key, value = apart(key, kept), apart(value, kept)
    past = call.residues(4).shape[2] if call.has(4) else 0
    if past or call.has(4):
        key = np.concatenate([call.residues(4), key], 2)
        value = np.concatenate([call.residues(5), value], 2)
    count = query.shape[1]
    heads = HeadsApart(query, repeated(key, count), repeated(value, count))
    weights = softmax(call, _biased(call, scores(call, heads), past), (-1,))
    result = call.product(weights, heads.value)
    return call.like(together(result) if joined else result), call.like(key), call.like(value)


def _biased(call: FieldCall, numbers: Residues, past: int) -> Residues:
    """Scores with the mask, then what is to come, then bounded; all optional."""
    if call.has(3):
        numbers = added(numbers, as_bias(call.tensor(3)))
    if call.integer("is_causal", 0):
        numbers = added(numbers, causal_bias(numbers.shape[-2], numbers.shape[-1], past))
    cap = call.number("softcap", 0.0)
    if not cap:
        return numbers
    bound = encoded(np.array(cap, np.float32))
    return multiplied(bound, function(call, "Tanh", divided(numbers, bound)))


KERNELS: dict[str, FieldKernel] = {"Attention": attention}
