"""Sums, products and powers of elements."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import TYPE_CHECKING

import numpy as np
import onnx

from relayout.verify.field.hashing import hashed, hashed_in_any_order
from relayout.verify.field.residues import (
    added,
    divided,
    inverted,
    multiplied,
    negated,
    power,
    ratio,
    subtracted,
)
from relayout.verify.field.values import FLOATS, residue_tensor

if TYPE_CHECKING:
    from relayout.verify.field.call import FieldCall, FieldKernel
    from relayout.verify.field.residues import Residues
    from relayout.verify.field.values import FieldTensor

LARGEST_POWER = 64


def _of_two(function: Callable[[Residues, Residues], Residues]) -> FieldKernel:
    def kernel(call: FieldCall) -> FieldTensor:
        return call.like(function(call.residues(0), call.residues(1)))

    return kernel


def _of_one(function: Callable[[Residues], Residues]) -> FieldKernel:
    def kernel(call: FieldCall) -> FieldTensor:
        return call.like(function(call.residues(0)))

    return kernel


def divide(call: FieldCall) -> FieldTensor:
    """Integers are divided and rounded, which no field knows."""
    left, right = call.residues(0), call.residues(1)
    if call.tensor(0).is_float:
        return call.like(divided(left, right))
    return call.like(hashed(call.key("Div"), np.broadcast_arrays(left, right)))


def raise_to(call: FieldCall) -> FieldTensor:
    """Whole powers are products, a half is the square root, others are a hash."""
    base, exponent = call.residues(0), call.tensor(1)
    if exponent.is_true and exponent.data.size == 1:
        number = float(exponent.data.ravel()[0])
        shape = np.broadcast_shapes(base.shape, exponent.shape)
        if number.is_integer() and abs(number) <= LARGEST_POWER:
            return call.like(power(np.broadcast_to(base, shape), int(number)))
        if number == 0.5:
            return call.like(hashed(call.key("Sqrt"), [np.broadcast_to(base, shape)]))
    return call.like(hashed(call.key("Pow"), np.broadcast_arrays(base, exponent.residues())))


def total(call: FieldCall) -> FieldTensor:
    return call.like(reduce(added, (tensor.residues() for tensor in call.tensors())))


def mean(call: FieldCall) -> FieldTensor:
    return call.like(multiplied(total(call).data, ratio(1, len(call.tensors()))))


def extreme(call: FieldCall) -> FieldTensor:
    """The largest or least is a function of a multiset; that of one element is the element."""
    operands = np.broadcast_arrays(*(tensor.residues() for tensor in call.tensors()))
    if len(operands) == 1:
        return call.like(operands[0])
    return call.like(hashed_in_any_order(call.key(call.op_type), operands))


def largest(call: FieldCall, left: Residues, right: Residues) -> Residues:
    return hashed_in_any_order(call.key("Max"), np.broadcast_arrays(left, right))


def least(call: FieldCall, left: Residues, right: Residues) -> Residues:
    return hashed_in_any_order(call.key("Min"), np.broadcast_arrays(left, right))


def absolute(call: FieldCall) -> FieldTensor:
    """A function of the pair of a number and its negative."""
    numbers = call.residues(0)
    smaller = np.minimum(numbers, negated(numbers))
    return call.like(hashed(call.key("Abs"), [smaller]))


def cast(call: FieldCall) -> FieldTensor:
    """Floats of another precision are the same number; floats as integers are hashed."""
    tensor, to = call.tensor(0), _cast_to(call)
    numbers = tensor.residues()
    if not tensor.is_float or to in FLOATS:
        if to == onnx.TensorProto.BOOL and tensor.element != to:
            numbers = hashed(call.key("to bool"), [numbers])
        return residue_tensor(numbers, to)
    return residue_tensor(hashed(call.key("Cast", to), [numbers]), to)


def _cast_to(call: FieldCall) -> int:
    if call.op_type == "CastLike":
        return call.tensor(1).element
    to = call.attributes["to"]
    return onnx.TensorProto.DataType.Value(to) if isinstance(to, str) else int(to)


KERNELS: dict[str, FieldKernel] = {
    "Add": _of_two(added),
    "Sub": _of_two(subtracted),
    "Mul": _of_two(multiplied),
    "Neg": _of_one(negated),
    "Reciprocal": _of_one(inverted),
    "Div": divide,
    "Pow": raise_to,
    "Sum": total,
    "Mean": mean,
    "Max": extreme,
    "Min": extreme,
    "Abs": absolute,
    "Cast": cast,
    "CastLike": cast,
}
