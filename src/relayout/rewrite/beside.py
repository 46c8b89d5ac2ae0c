"""Biases beside their products, where runtimes look for them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from relayout.graph.editing.editor import Editor
from relayout.graph.read import Shape, constant_of, is_op, perm_of, shape_of
from relayout.layout.transport import Array
from relayout.rewrite.links import RESHAPES
from relayout.rewrite.worklist import consumers


@dataclass(frozen=True, slots=True)
class BiasBesideProduct:
    """A bias is added before what comes between it and its product.

    Given:  m = MatMul(x, w); t = Transpose<perm=[0,2,1,3]>(m); y = Add(t, b), b of shape [8]
    Result: a = Add(m, b); y = Transpose<perm=[0,2,1,3]>(a)

    A runtime that adds biases within its products finds this one then. Each time a sum comes nearer
    to its product; nothing else is moved or computed.
    """

    name: str = "bring a bias beside its product"
    op_types: tuple[str, ...] = ("Add",)

    def apply(self, node: ir.Node, editor: Editor) -> Iterable[ir.Node] | None:
        for index in (0, 1):
            value, other = node.inputs[index], node.inputs[1 - index]
            tensor = constant_of(other)
            if value is None or tensor is None:
                continue
            views = _views_behind_product(value)
            bias = _before(tensor.numpy(), views) if views else None
            if bias is not None and other is not None:
                return _moved(node, views, other, bias, editor)
        return None


def _views_behind_product(value: ir.Value) -> list[ir.Node]:
    """The views between a product and a value without other consumers, the last one first."""
    views: list[ir.Node] = []
    while (node := _only_maker(value)) is not None:
        if is_op(node, "MatMul"):
            return views
        source = node.inputs[0] if is_op(node, "Transpose", *RESHAPES) else None
        if source is None:
            return []
        views.append(node)
        value = source
    return []


def _only_maker(value: ir.Value) -> ir.Node | None:
    """What computes a value, if it has one consumer in the same graph."""
    maker = value.producer()
    if maker is None or value.is_graph_output() or len(value.uses()) != 1:
        return None
    return maker if consumers(value)[0].graph is maker.graph else None


def _before(bias: Array, views: list[ir.Node]) -> Array | None:
    """What a bias is before these views: a number for each column of the product."""
    found: Array | None = bias
    for view in views:
        found = None if found is None else _before_view(found, view)
    columns = shape_of(views[-1].inputs[0])
    is_row = found is not None and columns is not None and found.shape == columns[-1:]
    return found if is_row else None


def _before_view(bias: Array, view: ir.Node) -> Array | None:
    """The same addend where the operand of a view is stored; it must not have more elements."""
    source, result = shape_of(view.inputs[0]), shape_of(view.outputs[0])
    if source is None or result is None or not source or not _fits(bias.shape, result):
        return None
    order = perm_of(view) if is_op(view, "Transpose") else None
    if order is not None:
        whole = bias.reshape((1,) * (order.rank - bias.ndim) + bias.shape)
        return _short(np.transpose(whole, order.inverse().axes))
    short = _short(bias)
    for axes in range(short.ndim, len(result) + 1):
        block = result[len(result) - axes :]
        lengths = [length for length in block if isinstance(length, int)]
        if len(lengths) == axes and np.prod(lengths, dtype=np.int64) == source[-1]:
            return np.broadcast_to(short, lengths).reshape(-1)
    return None


def _fits(shape: tuple[int, ...], result: Shape) -> bool:
    """Whether a sum with an addend of this shape is as large as its other operand."""
    if len(shape) > len(result):
        return False
    lengths = result[len(result) - len(shape) :]
    return all(own in (1, length) for own, length in zip(shape, lengths, strict=True))


def _short(bias: Array) -> Array:
    """Without the axes of length 1 that lead."""
    while bias.ndim > 1 and bias.shape[0] == 1:
        bias = bias[0]
    return bias


def _moved(
    node: ir.Node, views: list[ir.Node], given: ir.Value, bias: Array, editor: Editor
) -> list[ir.Node]:
    """The constant as given serves where it is as it was and stands before everything."""
    first, result = views[-1], node.outputs[0]
    product = first.inputs[0]
    is_same = given.is_initializer() and shape_of(given) == bias.shape
    addend = given if is_same else editor.constant(bias, hint=f"{given.name}_row", before=first)
    biased = editor.add(
        "Add",
        [product, addend],
        before=first,
        hint=f"{result.name}_biased",
        like=product,
        shape=None if product is None else product.shape,
        origin=[node],
        succeeds=node,
    )
    editor.read(first, 0, biased)
    touched = consumers(result)
    editor.substitute(result, views[0].outputs[0], origin=node)
    editor.discard(node)
    return [*touched, *views]
