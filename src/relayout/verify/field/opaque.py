"""Operators of which only the lengths of results are known: hashes of all their operands."""

from __future__ import annotations

from typing import TYPE_CHECKING

import onnx
from onnx import numpy_helper, shape_inference

from relayout.verify.field.definitions import schema_of, type_of
from relayout.verify.field.hashing import digest, key_of, spread
from relayout.verify.field.true_numbers import CONTROL, RANDOM, RANDOM_TOO
from relayout.verify.field.values import FieldTensor, UnknownError, residue_tensor

if TYPE_CHECKING:
    from relayout.verify.field.call import FieldCall

LARGEST_PARAMETER = 4096


def opaque(call: FieldCall) -> tuple[FieldTensor | None, ...]:
    """Each element of each result is a hash of its place and of all operands."""
    if call.op_type in (*RANDOM, *RANDOM_TOO, *CONTROL):
        raise UnknownError("it is not a function of its operands alone")
    key = call.key("", *(digest(tensor.residues()) for tensor in call.tensors()))
    types = _types(call)
    return tuple(_spread(call, key_of(key, i), types.get(f"out{i}")) for i in range(call.results))


def _spread(call: FieldCall, key: int, kind: onnx.TypeProto | None) -> FieldTensor:
    if kind is None or not kind.tensor_type.HasField("shape"):
        raise UnknownError("no rule, and no lengths of its results are inferred")
    dims = kind.tensor_type.shape.dim
    if not all(dim.HasField("dim_value") for dim in dims):
        raise UnknownError("no rule, and lengths of its results depend on values")
    shape = [dim.dim_value for dim in dims]
    call.context.check(shape)
    return residue_tensor(spread(key, shape), kind.tensor_type.elem_type)


def _types(call: FieldCall) -> dict[str, onnx.TypeProto]:
    schema = schema_of(call)
    if schema is None:
        raise UnknownError("no rule, and the standard does not have it")
    types = {f"in{i}": type_of(call, i) for i in range(len(call.operands)) if call.has(i)}
    data = {
        f"in{i}": numpy_helper.from_array(tensor.data)
        for i, tensor in enumerate(call.operands)
        if isinstance(tensor, FieldTensor) and _is_parameter(tensor)
    }
    opsets = [onnx.helper.make_opsetid(call.domain, call.version)]
    try:
        return shape_inference.infer_node_outputs(
            schema, call.node(), types, data, opset_imports=opsets
        )
    except (RuntimeError, ValueError) as error:
        raise UnknownError(f"no rule, and inference fails: {error}") from error


def _is_parameter(tensor: FieldTensor) -> bool:
    return tensor.is_true and tensor.data.size <= LARGEST_PARAMETER
