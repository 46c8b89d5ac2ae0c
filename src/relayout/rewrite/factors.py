"""Factors of products in the form that runtimes have most kernels for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import onnx_ir as ir

from relayout.graph.editing.editor import Editor
from relayout.graph.read import constant_of, is_op, rank_of
from relayout.layout.transport import Changes
from relayout.ops.quantization import without_leading_axes

MATRIX = 2


@dataclass(frozen=True, slots=True)
class QuantisedMatrix:
    """A quantised constant that a product reads loses its batch axes of length 1.

    Given:  v = DequantizeLinear<axis=3>(w, s, z); y = MatMul(x, v), where w is of shape [1,1,4,6]
    Result: v = DequantizeLinear<axis=1>(m, s, z); y = MatMul(x, v), where m is of shape [4,6]

    Runtimes join a bias to a product by a matrix, in bytes too. Each time axes get fewer.
    """

    name: str = "make a quantised factor a matrix"
    op_types: tuple[str, ...] = ("MatMul",)

    def apply(self, node: ir.Node, editor: Editor) -> Iterable[ir.Node] | None:
        factor, rank = node.inputs[1], rank_of(node.inputs[0])
        quantiser = _only_read_by(factor, node)
        weight = None if quantiser is None else constant_of(quantiser.inputs[0])
        if quantiser is None or weight is None or rank is None or rank < len(weight.shape):
            return None
        batch = tuple(weight.shape)[:-MATRIX]
        attributes = without_leading_axes(quantiser, len(weight.shape), len(batch))
        if not batch or any(length != 1 for length in batch) or attributes is None:
            return None
        array = weight.numpy()
        matrix = ir.Tensor(array.reshape(array.shape[-MATRIX:]), dtype=weight.dtype)
        stored = editor.constant(matrix, hint=f"{quantiser.outputs[0].name}_matrix", before=node)
        operands = [stored, *quantiser.inputs[1:]]
        (real,) = editor.adapted(quantiser, operands, [stored.shape], Changes(attributes))
        editor.substitute(quantiser.outputs[0], real, origin=quantiser)
        editor.discard(quantiser)
        return [node]


def _only_read_by(value: ir.Value | None, node: ir.Node) -> ir.Node | None:
    """The quantiser that a value comes from, if nothing but the node reads it."""
    quantiser = None if value is None else value.producer()
    if value is None or quantiser is None or not is_op(quantiser, "DequantizeLinear"):
        return None
    is_alone = len(value.uses()) == 1 and not value.is_graph_output()
    return quantiser if is_alone and quantiser.graph is node.graph else None
