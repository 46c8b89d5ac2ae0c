"""Operators that take elements by indexes.

Indexes that are computed from floats are unknown numbers: each is taken modulo the length of its
axis, which is one function of the index for both models.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from relayout.verify.field.call import at_one_type
from relayout.verify.field.residues import added, multiplied, subtracted
from relayout.verify.field.values import FieldTensor, residue_tensor, true_tensor

if TYPE_CHECKING:
    from relayout.verify.field.call import FieldCall, FieldKernel
    from relayout.verify.inputs import Array


def places(tensor: FieldTensor, length: int) -> Array:
    """Indexes along an axis of a length, none of them negative."""
    if not tensor.is_true:
        return tensor.data % max(length, 1)
    indexes = tensor.data.astype(np.int64)
    if indexes.size and (indexes.min() < -length or indexes.max() >= length):
        raise IndexError(f"an index is beyond a length of {length}")
    return np.where(indexes < 0, indexes + length, indexes)


def gather(call: FieldCall) -> FieldTensor:
    tensor = call.tensor(0)
    axis = call.integer("axis", 0)
    indexes = places(call.tensor(1), tensor.shape[axis])
    return tensor.with_data(np.take(tensor.data, indexes, axis))


def gather_elements(call: FieldCall) -> FieldTensor:
    tensor = call.tensor(0)
    axis = call.integer("axis", 0)
    indexes = places(call.tensor(1), tensor.shape[axis])
    return tensor.with_data(tensor.data[elements_at(indexes, axis)])


def elements_at(indexes: Array, axis: int) -> tuple[Array, ...]:
    """The place of each element whose index along one axis is given."""
    grid: list[Array] = list(np.indices(indexes.shape, sparse=True))
    grid[axis] = indexes
    return tuple(grid)


def gather_nd(call: FieldCall) -> FieldTensor:
    tensor, indexes = call.tensor(0), call.tensor(1)
    batch = call.integer("batch_dims", 0)
    depth = indexes.shape[-1]
    columns = [
        places(indexes.with_data(indexes.data[..., i]), tensor.shape[batch + i])
        for i in range(depth)
    ]
    grid = np.indices(indexes.shape[:batch], sparse=True)
    missing = indexes.data.ndim - 1 - batch
    leading = [each.reshape(*each.shape, *[1] * missing) for each in grid]
    return tensor.with_data(tensor.data[(*leading, *columns)])


def compress(call: FieldCall) -> FieldTensor:
    tensor = call.tensor(0)
    chosen = call.true(1).astype(bool)
    if "axis" not in call.attributes:
        return tensor.with_data(np.compress(chosen, tensor.data.ravel()))
    return tensor.with_data(np.compress(chosen, tensor.data, call.integer("axis", 0)))


def non_zero(call: FieldCall) -> FieldTensor:
    return true_tensor(np.array(np.nonzero(call.true(0)), np.int64))


def one_hot(call: FieldCall) -> FieldTensor:
    """The second of two values at the index, the first elsewhere."""
    indexes, values = call.tensor(0), call.tensor(2)
    depth = int(call.integers(1)[0])
    axis = call.integer("axis", -1)
    near = np.expand_dims(_wrapped(indexes, depth), axis)
    shape = [1] * near.ndim
    shape[axis] = depth
    chosen = near == np.arange(depth).reshape(shape)
    call.context.check(chosen.shape)
    return values.with_data(np.where(chosen, values.data[1], values.data[0]))


def _wrapped(indexes: FieldTensor, depth: int) -> Array:
    if not indexes.is_true:
        return indexes.data % max(depth, 1)
    whole = indexes.data.astype(np.int64)
    return np.where(whole < 0, whole + depth, whole)


def where(call: FieldCall) -> FieldTensor:
    """A choice by true values, or the line through both numbers: the first at 1, the other at 0."""
    condition = call.tensor(0)
    (left, right), kind = at_one_type([call.tensor(1), call.tensor(2)])
    if condition.is_true:
        return kind.with_data(np.where(condition.data, left, right))
    left, right = call.residues(1), call.residues(2)
    chosen = multiplied(condition.data, subtracted(left, right))
    return residue_tensor(added(right, chosen), kind.element)


KERNELS: dict[str, FieldKernel] = {
    "Gather": gather,
    "GatherElements": gather_elements,
    "GatherND": gather_nd,
    "Compress": compress,
    "NonZero": non_zero,
    "OneHot": one_hot,
    "Where": where,
}
