"""Products that an attention reads, of one tensor with several matrices, become one product."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from relayout.graph.editing.editor import Editor
from relayout.graph.read import constant_of, is_op, shape_of
from relayout.layout.transport import Array
from relayout.rewrite.attention_masks import FORMS
from relayout.rewrite.links import VIEWS
from relayout.rewrite.worklist import consumers


@dataclass(frozen=True, slots=True)
class _JoinedPart:
    """A product with a constant matrix, and the sum with a constant bias if one follows it."""

    product: ir.Node
    matrix: Array
    sum: ir.Node | None
    bias: Array | None

    @property
    def last(self) -> ir.Node:
        return self.sum or self.product

    @property
    def result(self) -> ir.Value:
        return self.last.outputs[0]

    @property
    def width(self) -> int:
        return int(self.matrix.shape[1])


@dataclass(frozen=True, slots=True)
class JoinProducts:
    """Products of one tensor, as those that give queries, keys and values, become one.

    Given:  q = Add(MatMul(x, u), a); k = Add(MatMul(x, v), b); y = Attention(q, k, ..)
    Result: q, k = Split(Add(MatMul(x, [u v]), [a b])); y = Attention(q, k, ..)

    Only where attentions and views read the results: what else follows a product may be done with
    it. Each time products get fewer.
    """

    name: str = "join products of one tensor"
    op_types: tuple[str, ...] = ("MatMul",)

    def apply(self, node: ir.Node, editor: Editor) -> Iterable[ir.Node] | None:
        source = node.inputs[0]
        if source is None or _part(node) is None:
            return None
        found = {use.node: _part(use.node) for use in source.uses() if use.node.graph is node.graph}
        parts = [part for part in found.values() if part is not None]
        if len(parts) < 2 or len({part.matrix.dtype for part in parts}) > 1:
            return None
        return _joined(source, parts, editor)


def _joined(source: ir.Value, parts: Sequence[_JoinedPart], editor: Editor) -> Iterable[ir.Node]:
    first = _first_of({part.product for part in parts})
    outer = list(shape_of(source) or ())[:-1]
    width = sum(part.width for part in parts)

    def added(op_type: str, left: ir.Value, right: Array) -> ir.Value:
        constant = editor.constant(right, hint=f"{source.name}_{op_type.lower()}", before=first)
        return editor.add(
            op_type,
            [left, constant],
            before=first,
            hint=f"{source.name}_joined",
            like=source,
            shape=ir.Shape([*outer, width]),
            origin=[part.last for part in parts],
        )

    total = added("MatMul", source, np.concatenate([part.matrix for part in parts], axis=1))
    if any(part.bias is not None for part in parts):
        total = added("Add", total, np.concatenate([_bias_of(part) for part in parts]))
    legs = editor.split(
        total,
        len(outer),
        [ir.Shape([*outer, part.width]) for part in parts],
        [part.width for part in parts],
        before=first,
        hint=f"{source.name}_part",
    )
    touched = [reader for part in parts for reader in consumers(part.result)]
    for part, leg in zip(parts, legs, strict=True):
        editor.substitute(part.result, leg, origin=part.last)
        editor.discard(part.last)
    return touched


def _part(node: ir.Node) -> _JoinedPart | None:
    """A product whose result, with its bias, goes to attentions and views alone."""
    matrix = constant_of(node.inputs[1]) if is_op(node, "MatMul") else None
    if matrix is None or len(matrix.shape) != 2 or shape_of(node.inputs[0]) is None:
        return None
    array, readers = matrix.numpy(), consumers(node.outputs[0])
    total = readers[0] if len(readers) == 1 and is_op(readers[0], "Add") else None
    bias = None if total is None else _bias_beside(total, node.outputs[0], array.shape[1])
    part = _JoinedPart(node, array, total, bias)
    if (total is None) != (bias is None) or not _is_read_as_it_is(part.result):
        return None
    return None if node.outputs[0].is_graph_output() else part


def _bias_beside(total: ir.Node, product: ir.Value, width: int) -> Array | None:
    """The constant, one number a column, that is added to a product."""
    other = total.inputs[1] if total.inputs[0] is product else total.inputs[0]
    tensor = constant_of(other)
    return None if tensor is None or tensor.shape != (width,) else tensor.numpy()


def _bias_of(part: _JoinedPart) -> Array:
    return np.zeros(part.width, part.matrix.dtype) if part.bias is None else part.bias


def _is_read_as_it_is(value: ir.Value) -> bool:
    readers = consumers(value)
    return bool(readers) and not value.is_graph_output() and all(map(_takes_as_it_is, readers))


def _takes_as_it_is(node: ir.Node) -> bool:
    return (node.domain, node.op_type) in FORMS or is_op(node, *VIEWS)


def _first_of(nodes: set[ir.Node]) -> ir.Node:
    """The one that comes first in its graph."""
    graph = next(iter(nodes)).graph
    return next(node for node in graph or () if node in nodes)
