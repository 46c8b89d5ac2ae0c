"""The nodes beside a node, as runtimes look for them when they join several into one kernel."""

from __future__ import annotations

import onnx_ir as ir

from relayout.graph.read import is_op


def maker_of(value: ir.Value | None, *op_types: str) -> ir.Node | None:
    """The node that makes a value, if it is one of these operators."""
    node = None if value is None else value.producer()
    return node if node is not None and is_op(node, *op_types) else None


def only_reader_of(value: ir.Value, op_type: str) -> ir.Node | None:
    """The only node that reads a value, if it is this operator."""
    readers = [reader for reader, _ in value.uses()]
    return readers[0] if len(readers) == 1 and is_op(readers[0], op_type) else None
