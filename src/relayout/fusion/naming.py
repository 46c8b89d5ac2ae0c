"""Operators as their user knows them."""

from __future__ import annotations

import onnx_ir as ir

from relayout.fusion.codes import Code
from relayout.ops.fusing import Fusing


def named(node: ir.Node) -> str:
    return f"{node.op_type} {node.name or node.outputs[0].name!s}"


def is_called(node: ir.Node, name: str) -> bool:
    """Whether a node has a name, or writes a value of that name."""
    return node.name == name or any(value.name == name for value in node.outputs)


def stop_reason(node: ir.Node) -> str:
    return f"fusing stops at {named(node)}, as was asked"


def opaque_reason(node: ir.Node, fusing: Fusing) -> tuple[Code, str]:
    """Why nothing shares the kernel of a node."""
    code = Code(fusing.opaque_for or Code.OPAQUE)
    if code is Code.DATA_DEPENDENT:
        return (
            code,
            f"the lengths of {named(node)} depend on values that are known only at run time",
        )
    if code is Code.UNKNOWN_OPERATOR:
        return code, f"nothing is known about operator {node.domain}.{node.op_type}"
    if code is Code.APART:
        return code, f"{named(node)} is kept apart, as was asked"
    return code, f"{named(node)} shares its kernel with nothing"
