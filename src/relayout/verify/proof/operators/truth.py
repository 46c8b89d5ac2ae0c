"""Which tensors hold truth values, as far as their origin says so."""

from __future__ import annotations

import onnx

from relayout.verify.proof.slices import Slice
from relayout.verify.proof.table import TermTable, TermValue

COMPARISONS = (
    *("And", "Equal", "Greater", "GreaterOrEqual", "IsInf", "IsNaN", "Less", "LessOrEqual"),
    *("Not", "Or", "Xor"),
)


def is_truth(table: TermTable, value: TermValue) -> bool:
    """Whether the tensor is known to hold truth values."""
    array = table.arrays.get(value.term)
    if array is not None:
        return bool(array.dtype.kind == "b")
    key = table.terms[value.term]
    if isinstance(key[0], Slice):
        return is_truth(table, TermValue(key[0].term, None))
    if key[0] == "each" and isinstance(key[1], tuple):
        name, *settings = key[1]
        return name in COMPARISONS or (name == "Cast" and settings[0] == onnx.TensorProto.BOOL)
    return key[1:] == (onnx.TensorProto.BOOL,)
