"""Views of constants and the arithmetic of shapes, evaluated at compile time."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import onnx
import onnx_ir as ir
from onnx.reference import ReferenceEvaluator

from relayout.graph.edit import Editor
from relayout.graph.measure import item_bytes
from relayout.graph.read import constant_of, is_op, shape_of
from relayout.graph.region import subgraphs_of
from relayout.layout.transport import Array
from relayout.ops.folding import INTEGER_ARITHMETIC, MOVES_ONLY
from relayout.rewrite.worklist import readers

SMALL_BYTES = 1 << 20
"""A constant up to this size may be made though it is larger than what it is made from."""

SHAPE_BYTES = 1 << 13
"""Shapes, axes and the like are smaller than this."""


@dataclass(frozen=True, slots=True)
class FoldConstants:
    """What is computed from constants alone, by moving elements or by exact integer arithmetic.

    Given:  s = Shape(x); t = Gather(s, 0); x of shape [2,3]
    Result: t is the constant 2

    A Transpose has its own rewrite, which moves the data only when it is written.
    """

    name: str = "fold constants"
    op_types: tuple[str, ...] = tuple(sorted((MOVES_ONLY | INTEGER_ARITHMETIC) - {"Transpose"}))

    def apply(self, node: ir.Node, editor: Editor) -> Iterable[ir.Node] | None:
        if not _may_fold(node):
            return None
        array = _static_shape(node) if is_op(node, "Shape") else _evaluated(node, editor)
        if array is None:
            return None
        result = node.outputs[0]
        tensor = ir.tensor(array, dtype=result.dtype)
        touched = readers(result)
        constant = editor.constant(tensor, hint=f"{result.name}_folded", before=node)
        editor.substitute(result, constant, origin=node)
        editor.discard(node)
        return touched


def _may_fold(node: ir.Node) -> bool:
    result = node.outputs[0]
    if len(node.outputs) != 1 or result.dtype is None or result.is_graph_output():
        return False
    if any(attribute.is_ref() for attribute in node.attributes.values()) or any(subgraphs_of(node)):
        return False
    size = _bytes(result)
    if size is None:
        return False
    if node.op_type not in MOVES_ONLY:
        return result.dtype.is_integer() and size <= SHAPE_BYTES
    return size <= max(SMALL_BYTES, _freed_bytes(node))


def _freed_bytes(node: ir.Node) -> int:
    """The size of the constants that nothing else reads."""
    alone = [value for value in node.inputs if value is not None and len(value.uses()) == 1]
    return sum(_bytes(value) or 0 for value in alone)


def _bytes(value: ir.Value) -> int | None:
    shape = shape_of(value)
    if shape is None or value.dtype is None:
        return None
    lengths = [length for length in shape if isinstance(length, int)]
    if len(lengths) < len(shape):
        return None
    return math.ceil(math.prod(lengths) * item_bytes(value.dtype))


def _static_shape(node: ir.Node) -> Array | None:
    shape = shape_of(node.inputs[0])
    if shape is None or not all(isinstance(length, int) for length in shape):
        return None
    start = node.attributes.get_int("start", 0)
    end = node.attributes.get_int("end", len(shape))
    return np.asarray(shape[slice(start, end)], np.int64)


def _evaluated(node: ir.Node, editor: Editor) -> Array | None:
    tensors = [constant_of(value) for value in node.inputs]
    given = [
        tensor is not None or value is None
        for tensor, value in zip(tensors, node.inputs, strict=True)
    ]
    if not tensors or not all(given):
        return None
    feeds = {
        f"x{index}": tensor.numpy() for index, tensor in enumerate(tensors) if tensor is not None
    }
    try:
        results = ReferenceEvaluator(_alone(node, editor)).run(None, feeds, attributes={})
    except (ValueError, IndexError, NotImplementedError):
        # The operands do not fit together: what the runtime says to that is not ours to change.
        return None
    return np.asarray(next(iter(results)))


def _alone(node: ir.Node, editor: Editor) -> onnx.FunctionProto:
    """The node as a function of its operands."""
    proto = ir.to_proto(node)
    names = ["" if value is None else f"x{index}" for index, value in enumerate(node.inputs)]
    proto.input[:] = names
    proto.output[:] = ["y"]
    opset = onnx.helper.make_opsetid("", editor.region.version)
    return onnx.helper.make_function(
        "relayout", "folded", [name for name in names if name], ["y"], [proto], [opset]
    )
