"""Sequences of tensors, and optional values, which are sequences of at most one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from relayout.verify.field.call import at_one_type
from relayout.verify.field.values import FieldSequence, FieldTensor, true_tensor

if TYPE_CHECKING:
    from relayout.verify.field.call import FieldCall, FieldKernel
    from relayout.verify.field.values import FieldValue


def construct(call: FieldCall) -> FieldSequence:
    return FieldSequence(tuple(call.tensors()))


def empty(_call: FieldCall) -> FieldSequence:
    return FieldSequence(())


def length(call: FieldCall) -> FieldTensor:
    return true_tensor(np.array(len(call.sequence(0).items), np.int64))


def at(call: FieldCall) -> FieldTensor:
    return call.sequence(0).items[call.integers(1)[0]]


def insert(call: FieldCall) -> FieldSequence:
    items = list(call.sequence(0).items)
    place = call.integers(2)[0] if call.has(2) else len(items)
    items.insert(place, call.tensor(1))
    return FieldSequence(tuple(items))


def erase(call: FieldCall) -> FieldSequence:
    items = list(call.sequence(0).items)
    del items[call.integers(1)[0] if call.has(1) else -1]
    return FieldSequence(tuple(items))


def concat(call: FieldCall) -> FieldTensor:
    arrays, kind = at_one_type(call.sequence(0).items)
    axis = call.integer("axis", 0)
    joined = np.stack if call.integer("new_axis", 0) else np.concatenate
    return kind.with_data(joined(arrays, axis))


def split(call: FieldCall) -> FieldSequence:
    tensor, axis = call.tensor(0), call.integer("axis", 0)
    whole = tensor.shape[axis]
    if not call.has(1):
        parts = np.split(tensor.data, whole, axis)
        if not call.integer("keepdims", 1):
            parts = [np.squeeze(part, axis) for part in parts]
        return FieldSequence(tuple(tensor.with_data(part) for part in parts))
    sizes = call.integers(1)
    places = np.cumsum(sizes)[:-1] if call.true(1).ndim else range(sizes[0], whole, sizes[0])
    parts = np.split(tensor.data, list(places), axis)
    return FieldSequence(tuple(tensor.with_data(part) for part in parts))


def optional(call: FieldCall) -> FieldSequence:
    return FieldSequence(tuple(call.tensors()))


def get_element(call: FieldCall) -> FieldValue:
    operand = call.operands[0]
    return operand.items[0] if isinstance(operand, FieldSequence) else operand


def has_element(call: FieldCall) -> FieldTensor:
    operand = call.operands[0] if call.operands else None
    full = isinstance(operand, FieldTensor) or (
        isinstance(operand, FieldSequence) and bool(operand.items)
    )
    return true_tensor(np.array(full))


KERNELS: dict[str, FieldKernel] = {
    "SequenceConstruct": construct,
    "SequenceEmpty": empty,
    "SequenceLength": length,
    "SequenceAt": at,
    "SequenceInsert": insert,
    "SequenceErase": erase,
    "ConcatFromSequence": concat,
    "SplitToSequence": split,
    "Optional": optional,
    "OptionalGetElement": get_element,
    "OptionalHasElement": has_element,
}
