"""The functions that a model defines."""

from __future__ import annotations

import onnx
import onnx_ir as ir


def define_function(model: ir.Model, definition: onnx.FunctionProto) -> bool:
    """Add a function to a model; False where it has one of that name."""
    function = ir.serde.deserialize_function(definition)
    is_new = function.identifier() not in model.functions
    if is_new:
        model.functions[function.identifier()] = function
    return is_new


def remove_function(model: ir.Model, domain: str, name: str) -> bool:
    """Remove a function that nothing calls from a model; False where it has none of that name."""
    return model.functions.pop((domain, name, ""), None) is not None
