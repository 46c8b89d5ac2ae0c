"""Models that were fused, read back from what was written."""

from __future__ import annotations

from typing import Any

import onnx

from relayout.fusion.emit import FUSED_DOMAIN
from relayout.graph.io.inline import inlined
from relayout.optimizer.fuse import FuseResult, fuse


def fused(given: onnx.ModelProto, **options: Any) -> FuseResult:
    """The result, of which it is known that it can be taken apart exactly."""
    result = fuse(given, verify=False, **options)
    back, notices = inlined(result.model)
    assert notices == []
    assert back.SerializeToString(deterministic=True) == given.SerializeToString(deterministic=True)
    return result


def functions_of(model: onnx.ModelProto) -> list[onnx.FunctionProto]:
    return [function for function in model.functions if function.domain == FUSED_DOMAIN]


def operators_in(function: onnx.FunctionProto) -> list[str]:
    return [node.op_type for node in function.node if node.op_type != "Constant"]


def arguments_of(function: onnx.FunctionProto) -> int:
    return len(function.input) + len(function.output)


def groups_of(model: onnx.ModelProto) -> list[str]:
    """The operators of each function; sorted, so that a table can be written down."""
    return sorted(" ".join(operators_in(function)) for function in functions_of(model))
