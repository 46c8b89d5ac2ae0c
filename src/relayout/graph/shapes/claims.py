"""What a model records about its values, as far as it may be believed.

A length that is recorded for an output, an inner value or an operand of a body is a claim: no
runtime holds a model to it, and exporters record lengths that a run contradicts. So lengths are
taken only from inputs, initialisers and the operators between them. The element type of a record
is believed, because runtimes refuse a model in which it is untrue; its number of axes is where
nothing else tells it, as for the results of unknown operators.
"""

from __future__ import annotations

import onnx


def without_lengths(declared: onnx.TypeProto) -> onnx.TypeProto:
    """A type with the number of axes that was declared, and nothing about their lengths."""
    claim = onnx.TypeProto()
    claim.CopyFrom(declared)
    _clear_lengths(claim)
    return claim


def clear_impossible(declared: onnx.TypeProto) -> None:
    """Take out lengths below 0, which exporters write for lengths they do not know."""
    for dim in declared.tensor_type.shape.dim if declared.HasField("tensor_type") else ():
        if dim.HasField("dim_value") and dim.dim_value < 0:
            dim.ClearField("dim_value")


def is_informative(declared: onnx.TypeProto) -> bool:
    kind = declared.WhichOneof("value")
    return kind is not None and (kind != "tensor_type" or declared.tensor_type.HasField("shape"))


def contradict(declared: onnx.TypeProto, inferred: onnx.TypeProto) -> bool:
    """Whether a declared shape cannot be the inferred one."""
    if not is_informative(inferred) or not inferred.HasField("tensor_type"):
        return False
    ours, theirs = declared.tensor_type.shape.dim, inferred.tensor_type.shape.dim
    return len(ours) != len(theirs) or any(
        a.dim_value != b.dim_value
        for a, b in zip(ours, theirs, strict=True)
        if a.HasField("dim_value") and b.HasField("dim_value") and a.dim_value >= 0
    )


def _clear_lengths(declared: onnx.TypeProto) -> None:
    kind = declared.WhichOneof("value")
    if kind in {"sequence_type", "optional_type"}:
        _clear_lengths(getattr(declared, kind).elem_type)
    elif kind == "map_type":
        _clear_lengths(declared.map_type.value_type)
    elif kind in {"tensor_type", "sparse_tensor_type"}:
        for dim in getattr(declared, kind).shape.dim:
            dim.ClearField("value")
