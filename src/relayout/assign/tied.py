"""Constants that several nodes read: in another order for one of them they are stored twice."""

from __future__ import annotations

import onnx_ir as ir

from relayout.graph.read import constant_of
from relayout.layout.transport import Transport
from relayout.ops.measure import is_large


def tied_operands(node: ir.Node) -> tuple[int, ...]:
    """The operands that are large constants with other readers."""
    return tuple(index for index, value in enumerate(node.inputs) if _is_tied(value))


def stores_twice(tied: tuple[int, ...], transport: Transport) -> bool:
    """Whether a restatement needs one of these in another form than its other readers."""
    changes = transport.changes
    read = {
        operand for step in changes.steps for operand in step.operands if isinstance(operand, int)
    }
    left_out = {index for index in tied if changes.steps and index not in read}
    changed = changes.constants.keys() | left_out
    return any(transport.inputs[index] is not None or index in changed for index in tied)


def _is_tied(value: ir.Value | None) -> bool:
    tensor = constant_of(value)
    if value is None or tensor is None or not is_large(tensor):
        return False
    return len(value.uses()) > 1 or value.is_graph_output()
