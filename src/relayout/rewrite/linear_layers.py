"""Linear layers that exporters write for matrices become products of tensors of any rank."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from relayout.graph.editing.editor import Editor
from relayout.graph.read import constant_of, is_op, shape_of
from relayout.layout.transport import Array
from relayout.rewrite.worklist import consumers

FLOATS = frozenset((ir.DataType.FLOAT, ir.DataType.DOUBLE))
"""In narrower types a factor of the product would be rounded once more."""


@dataclass(frozen=True, slots=True)
class GemmToMatMul:
    """A Gemm with constants becomes a product and a sum, on the axes there are around it.

    Given:  r = Reshape(x, [-1, K]); g = Gemm(r, w, b); y = Reshape(g, [B, S, N])
    Result: m = MatMul(x, w); y = Add(m, b)

    The Reshapes may be missing. Each time a Gemm goes.
    """

    name: str = "state a linear layer as a product"
    op_types: tuple[str, ...] = ("Gemm",)

    def apply(self, node: ir.Node, editor: Editor) -> Iterable[ir.Node] | None:
        matrix = _matrix(node)
        added = None if matrix is None else _added(node, matrix.shape[1])
        if matrix is None or added is None or node.attributes.get_int("transA"):
            return None
        source, last = _borders(node, matrix.shape)
        outer = shape_of(source)
        if source is None or outer is None:
            return None
        shape = ir.Shape([*outer[:-1], matrix.shape[1]])
        made = source
        for op_type, array in (("MatMul", matrix), *(("Add", bias) for bias in added)):
            operand = editor.constant(array, hint=f"{node.outputs[0].name}_operand", before=node)
            made = editor.add(
                op_type,
                [made, operand],
                before=node,
                hint=f"{node.outputs[0].name}_{op_type.lower()}",
                like=node.outputs[0],
                shape=shape,
                origin=[node],
            )
        touched = consumers(last.outputs[0])
        editor.substitute(last.outputs[0], made, origin=last)
        editor.discard(last)
        return touched


def _matrix(node: ir.Node) -> Array | None:
    """The second factor as it is multiplied by, if it is a constant."""
    tensor = constant_of(node.inputs[1])
    if tensor is None or tensor.dtype not in FLOATS:
        return None
    array = tensor.numpy()
    turned = array.T if node.attributes.get_int("transB") else array
    return _scaled(turned, node.attributes.get_float("alpha", 1.0))


def _added(node: ir.Node, width: int) -> list[Array] | None:
    """What is added to each row; None where it is not a constant, or not alike for all rows."""
    if len(node.inputs) < 3 or node.inputs[2] is None:
        return []
    tensor = constant_of(node.inputs[2])
    if tensor is None or tensor.size != width or tensor.shape[-1] != width:
        return None
    bias = tensor.numpy().reshape(width)
    return [_scaled(bias, node.attributes.get_float("beta", 1.0))]


def _scaled(array: Array, factor: float) -> Array:
    if factor == 1:
        return np.ascontiguousarray(array)
    return np.ascontiguousarray((array.astype(np.float64) * factor).astype(array.dtype))


def _borders(node: ir.Node, matrix: tuple[int, ...]) -> tuple[ir.Value | None, ir.Node]:
    """What the layer reads, and the node that gives its result, outside of Reshapes around it."""
    given, depth, width = node.inputs[0], *matrix
    before = None if given is None else given.producer()
    readers = consumers(node.outputs[0])
    if before is None or len(readers) != 1 or node.outputs[0].is_graph_output():
        return given, node
    if not (is_op(before, "Reshape") and is_op(readers[0], "Reshape")):
        return given, node
    outer, inner = shape_of(before.inputs[0]), shape_of(readers[0].outputs[0])
    if outer is None or inner is None or readers[0].inputs[0] is not node.outputs[0]:
        return given, node
    is_alike = outer[-1:] == (depth,) and inner == (*outer[:-1], width)
    is_known = all(isinstance(length, int) for length in outer)
    return (before.inputs[0], readers[0]) if is_alike and is_known else (given, node)
