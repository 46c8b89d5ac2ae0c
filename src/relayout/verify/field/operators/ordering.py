"""Operators that order elements, by an order of residues of its own.

A field has no order that fits its sums. Any order serves to compare two models, as long as it is
the same one for both: what holds for every order holds for that of the numbers.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from relayout.verify.field.hashing import rank_words
from relayout.verify.field.values import FieldTensor, true_tensor

if TYPE_CHECKING:
    from relayout.verify.field.call import FieldCall, FieldKernel
    from relayout.verify.inputs import Array


def _ranks(call: FieldCall) -> Array:
    return rank_words(call.residues(0), call.key("order"))


def argument(call: FieldCall, *, largest: bool) -> FieldTensor:
    axis = call.integer("axis", 0)
    ranks = _ranks(call)
    found = np.argmax(ranks, axis) if largest else np.argmin(ranks, axis)
    kept = np.expand_dims(found, axis) if call.integer("keepdims", 1) else found
    return true_tensor(np.asarray(kept, np.int64), fed=True)


def top_k(call: FieldCall) -> tuple[FieldTensor, FieldTensor]:
    tensor = call.tensor(0)
    axis = call.integer("axis", -1)
    count = call.integer("k", 0) if "k" in call.attributes else call.integers(1)[0]
    order = np.argsort(_ranks(call), axis, kind="stable")
    if call.integer("largest", 1):
        order = np.flip(order, axis)
    chosen = np.take(order, range(count), axis)
    values = np.take_along_axis(tensor.data, chosen, axis)
    return tensor.with_data(values), true_tensor(chosen.astype(np.int64), fed=True)


def hardmax(call: FieldCall) -> FieldTensor:
    ranks = _ranks(call)
    since_13 = call.version >= 13
    axis = call.integer("axis", -1 if since_13 else 1) % ranks.ndim
    if since_13:
        return call.like((ranks == ranks.max(axis, keepdims=True)).astype(np.int64))
    rows = ranks.reshape(int(np.prod(ranks.shape[:axis], dtype=np.int64)), -1)
    largest = (rows == rows.max(1, keepdims=True)).astype(np.int64)
    return call.like(largest.reshape(ranks.shape))


KERNELS: dict[str, FieldKernel] = {
    "ArgMax": partial(argument, largest=True),
    "ArgMin": partial(argument, largest=False),
    "TopK": top_k,
    "Hardmax": hardmax,
}
