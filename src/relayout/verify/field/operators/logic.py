"""Truth values: polynomials of residues, in which false is 0 and true is 1."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import onnx

from relayout.verify.field.hashing import hashed, hashed_in_any_order
from relayout.verify.field.residues import added, multiplied, subtracted
from relayout.verify.field.values import residue_tensor

if TYPE_CHECKING:
    from relayout.verify.field.call import FieldCall, FieldKernel
    from relayout.verify.field.residues import Residues
    from relayout.verify.field.values import FieldTensor


def _truth(numbers: Residues) -> FieldTensor:
    return residue_tensor(numbers, onnx.TensorProto.BOOL)


def _of_two(function: Callable[[Residues, Residues], Residues]) -> FieldKernel:
    def kernel(call: FieldCall) -> FieldTensor:
        return _truth(function(call.residues(0), call.residues(1)))

    return kernel


def _or(left: Residues, right: Residues) -> Residues:
    return subtracted(added(left, right), multiplied(left, right))


def _xor(left: Residues, right: Residues) -> Residues:
    return subtracted(added(left, right), multiplied(2, multiplied(left, right)))


def negate(call: FieldCall) -> FieldTensor:
    return _truth(subtracted(1, call.residues(0)))


def equal(call: FieldCall) -> FieldTensor:
    """Equal elements are equal; others may be at other inputs."""
    left, right = np.broadcast_arrays(call.residues(0), call.residues(1))
    guess = hashed_in_any_order(call.key("Equal"), [left, right])
    return _truth(np.where(left == right, 1, guess))


def compare(call: FieldCall, *, swapped: bool, negated: bool) -> FieldTensor:
    """All four comparisons by one of them: left > right."""
    left, right = np.broadcast_arrays(call.residues(0), call.residues(1))
    pair = [right, left] if swapped else [left, right]
    greater = np.where(left == right, 0, hashed(call.key("Greater"), pair))
    return _truth(subtracted(1, greater) if negated else greater)


def is_special(call: FieldCall) -> FieldTensor:
    """IsNaN and IsInf: a hash, as any element may be one at other inputs."""
    return _truth(hashed(call.key(), [call.residues(0)]))


def hashed_pair(call: FieldCall) -> FieldTensor:
    return call.like(hashed(call.key(), np.broadcast_arrays(call.residues(0), call.residues(1))))


KERNELS: dict[str, FieldKernel] = {
    "And": _of_two(multiplied),
    "Or": _of_two(_or),
    "Xor": _of_two(_xor),
    "Not": negate,
    "Equal": equal,
    "Greater": partial(compare, swapped=False, negated=False),
    "Less": partial(compare, swapped=True, negated=False),
    "LessOrEqual": partial(compare, swapped=False, negated=True),
    "GreaterOrEqual": partial(compare, swapped=True, negated=True),
    "IsNaN": is_special,
    "IsInf": is_special,
    **dict.fromkeys(("Mod", "BitShift", "BitwiseAnd", "BitwiseOr", "BitwiseXor"), hashed_pair),
}
