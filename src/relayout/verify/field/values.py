"""Values of a run over the field: residues where floats were, and true numbers where they steer."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import onnx

from relayout.verify.field.hashing import key_of
from relayout.verify.field.residues import PRIME, Residues, encoded

if TYPE_CHECKING:
    from relayout.verify.inputs import Array

FLOATS = frozenset(
    (
        onnx.TensorProto.FLOAT,
        onnx.TensorProto.FLOAT16,
        onnx.TensorProto.DOUBLE,
        onnx.TensorProto.BFLOAT16,
        onnx.TensorProto.FLOAT8E4M3FN,
        onnx.TensorProto.FLOAT8E4M3FNUZ,
        onnx.TensorProto.FLOAT8E5M2,
        onnx.TensorProto.FLOAT8E5M2FNUZ,
        onnx.TensorProto.FLOAT4E2M1,
    )
)


class UnknownError(Exception):
    """What an operator computes is not known over the field."""


class SteeredError(UnknownError):
    """A number that steers an operator is a residue; at other inputs it may be a true one."""


class TooLargeError(Exception):
    """A run would take more work than was allowed."""


@dataclass(frozen=True, eq=False, slots=True)
class FieldTensor:
    """A tensor: its true numbers if `is_true`, else residues of them.

    Integers, booleans and strings are true, and so are floats that depend on constants and shapes
    only. What comes from the inputs is `fed`.
    """

    data: Array
    element: int
    is_true: bool
    fed: bool = False

    @property
    def is_float(self) -> bool:
        return self.element in FLOATS

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.data.shape)

    def residues(self) -> Residues:
        if not self.is_true:
            return self.data
        if self.data.dtype.kind in "OUS":
            words = [key_of(str(word)) % PRIME for word in self.data.ravel()]
            return np.array(words, np.int64).reshape(self.data.shape)
        return encoded(self.data)

    def with_data(self, data: Array) -> FieldTensor:
        """A tensor of the same kind with other elements."""
        return replace(self, data=data)


@dataclass(frozen=True, slots=True)
class UnknownValue:
    """A value that could not be computed, and why: a `misfit` is one of these operands only."""

    reason: str
    misfit: bool = False


@dataclass(frozen=True, eq=False, slots=True)
class FieldSequence:
    """A sequence of tensors, or an optional value: a sequence of at most one."""

    items: tuple[FieldTensor, ...]


FieldValue = FieldTensor | FieldSequence | UnknownValue | None
"""What a name stands for; None is an operand or result that is left out."""


def true_tensor(data: Array, *, fed: bool = False) -> FieldTensor:
    """Numbers as they are."""
    element = onnx.helper.np_dtype_to_tensor_dtype(data.dtype) if data.dtype.kind != "U" else 8
    return FieldTensor(data, element, is_true=True, fed=fed)


def residue_tensor(data: Residues, element: int = onnx.TensorProto.FLOAT) -> FieldTensor:
    return FieldTensor(np.asarray(data, np.int64), element, is_true=False)
