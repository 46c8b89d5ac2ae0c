"""Constants as they are before they are repeated, which may take too much to be stored."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from relayout.graph.read import constant_of, is_op
from relayout.layout.transport import Array

LONGEST = 8
"""More steps than these from a constant to what is made of it are not followed."""
LARGEST = 1 << 26
"""So many elements may be looked at."""


def unrepeated(value: ir.Value | None, depth: int = 0) -> Array | None:
    """An array that holds all of a value, which repeats it, if that is made of constants alone.

    Given:  e = Expand(c, s); b = Cast<to=BOOL>(e); value = Where(b, 0, -inf)
    Result: where(c as bool, 0, -inf)
    """
    tensor = constant_of(value)
    if tensor is not None:
        return tensor.numpy() if tensor.size <= LARGEST else None
    node = None if value is None else value.producer()
    if node is None or depth > LONGEST:
        return None
    if is_op(node, "Expand", "Identity"):
        return unrepeated(node.inputs[0], depth + 1)
    if is_op(node, "Cast"):
        return _as_condition(node, unrepeated(node.inputs[0], depth + 1))
    return _chosen(node, depth) if is_op(node, "Where") else None


def _as_condition(node: ir.Node, given: Array | None) -> Array | None:
    is_condition = node.outputs[0].dtype == ir.DataType.BOOL
    return given.astype(np.bool_) if given is not None and is_condition else None


def _chosen(node: ir.Node, depth: int) -> Array | None:
    parts = [unrepeated(part, depth + 1) for part in node.inputs]
    arrays = [part for part in parts if part is not None]
    if len(arrays) < len(parts):
        return None
    shape = np.broadcast_shapes(*(array.shape for array in arrays))
    return np.where(*arrays) if np.prod(shape) <= LARGEST else None
