"""Operators that the standard defines by others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import onnx
from onnx import defs

if TYPE_CHECKING:
    from relayout.verify.field.call import FieldCall
    from relayout.verify.field.values import FieldValue


def defined(call: FieldCall) -> tuple[FieldValue, ...] | None:
    """The results of the body that the standard has for a call, if it has one."""
    schema = schema_of(call)
    body = None if schema is None else _body(schema, call)
    return None if body is None else tuple(call.run_function(body, call))


def schema_of(call: FieldCall) -> defs.OpSchema | None:
    try:
        return defs.get_schema(call.op_type, call.version, call.domain)
    except defs.SchemaError:
        return None


def _body(schema: Any, call: FieldCall) -> onnx.FunctionProto | None:
    """The newest body that a call of this version may use; onnx's types do not state bodies."""
    if schema.has_function:
        version = _newest(schema.function_opset_versions, call.version)
        text = schema.get_function_with_opset_version(version)
    elif schema.has_context_dependent_function:
        version = _newest(schema.context_dependent_function_opset_versions, call.version)
        types = [type_of(call, i).SerializeToString() for i in range(len(call.operands))]
        message = call.node().SerializeToString()
        text = schema.get_context_dependent_function_with_opset_version(version, message, types)
    else:
        return None
    return onnx.FunctionProto.FromString(text) if text else None


def _newest(versions: list[int], version: int) -> int:
    return max((each for each in versions if each <= version), default=min(versions))


def type_of(call: FieldCall, index: int) -> onnx.TypeProto:
    """The type of an operand with its shape; none where it is left out."""
    if not call.has(index):
        return onnx.TypeProto()
    tensor = call.tensor(index)
    return onnx.helper.make_tensor_type_proto(tensor.element, tensor.shape)
