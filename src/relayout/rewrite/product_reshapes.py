"""What runtimes compute as one: a product, its activation and the quantisers on both sides."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import onnx_ir as ir

from relayout.graph.editing.editor import Editor
from relayout.graph.read import constant_of, is_op
from relayout.ops.quantization import has_one_scale
from relayout.ops.registry import facts_of
from relayout.rewrite.worklist import consumers


@dataclass(frozen=True, slots=True)
class ReshapeOutsideProduct:
    """A Reshape between a product and its activation or a quantiser goes to their other side.

    Given:  d = DequantizeLinear(q, s, z); r = Reshape(d, t); y = Conv(r, w)
    Result: b = Reshape(q, t); r = DequantizeLinear(b, s, z); y = Conv(r, w)

    Given:  c = Conv(x, w); r = Reshape(c, t); q = QuantizeLinear(r, s, z)
    Result: b = QuantizeLinear(c, s, z); q = Reshape(b, t)

    A runtime that computes them as one, in bytes where they are quantised, finds them then. Each
    time one of them comes beside a product; no value changes.
    """

    name: str = "take a Reshape away from between a product and its quantiser"
    op_types: tuple[str, ...] = ("Reshape",)

    def apply(self, node: ir.Node, editor: Editor) -> Iterable[ir.Node] | None:
        target = constant_of(node.inputs[1]) if len(node.inputs) > 1 else None
        if target is None:
            return None
        return _before_quantiser(node, target, editor) or _behind(node, target, editor)


def _before_quantiser(
    node: ir.Node, target: ir.TensorProtocol, editor: Editor
) -> list[ir.Node] | None:
    """Let the operand of a product change its shape before it is made real."""
    value, result = node.inputs[0], node.outputs[0]
    quantiser = None if value is None else value.producer()
    if quantiser is None or not _is_uniform(quantiser, "DequantizeLinear"):
        return None
    stored, products = quantiser.inputs[0], consumers(result)
    if stored is None or constant_of(stored) is not None or quantiser.graph is not node.graph:
        return None
    feeds_products = all(_sums_products(consumer) for consumer in products)
    if not products or not feeds_products or result.is_graph_output():
        return None
    reshaped = _reshaped(node, target, stored, editor, before=quantiser)
    editor.substitute(result, _again(quantiser, reshaped, result.shape, editor), origin=node)
    editor.discard(node)
    return [*_makers(reshaped), *products]


def _behind(node: ir.Node, target: ir.TensorProtocol, editor: Editor) -> list[ir.Node] | None:
    """Let the result of a product change its shape after what is done to each of its elements."""
    value, result = node.inputs[0], node.outputs[0]
    follower = _only_consumer(result)
    if value is None or follower is None or _only_consumer(value) is not node:
        return None
    if follower.inputs[0] is not result or not _joins(follower, value.producer()):
        return None
    last = follower.outputs[0]
    joined = _again(follower, value, value.shape, editor)
    reshaped = _reshaped(node, target, joined, editor, before=follower)
    touched = consumers(last)
    editor.substitute(last, reshaped, origin=follower)
    editor.discard(follower)
    return [*_makers(reshaped), *touched]


def _joins(follower: ir.Node, maker: ir.Node | None) -> bool:
    """Whether runtimes join a node to the product, or to the activation of one, before it."""
    if maker is None or _activates(follower):
        return _sums_products(maker)
    if not _is_uniform(follower, "QuantizeLinear"):
        return False
    operand = maker.inputs[0] if _activates(maker) else None
    product = maker if operand is None else operand.producer()
    return _sums_products(product)


def _activates(node: ir.Node) -> bool:
    return facts_of(node).numbers.activates


def _sums_products(node: ir.Node | None) -> bool:
    return node is not None and facts_of(node).numbers.sums_products


def _is_uniform(node: ir.Node, op_type: str) -> bool:
    return is_op(node, op_type) and has_one_scale(node)


def _only_consumer(value: ir.Value) -> ir.Node | None:
    """The only consumer of a value, if there is one and in the same graph."""
    maker, found = value.producer(), consumers(value)
    if value.is_graph_output() or len(value.uses()) != 1 or maker is None:
        return None
    return found[0] if found[0].graph is maker.graph else None


def _again(node: ir.Node, operand: ir.Value, shape: ir.Shape | None, editor: Editor) -> ir.Value:
    """What a node does to each element, done to another operand."""
    return editor.adapted(node, [operand, *node.inputs[1:]], [shape])[0]


def _reshaped(
    node: ir.Node,
    target: ir.TensorProtocol,
    value: ir.Value,
    editor: Editor,
    *,
    before: ir.Node,
) -> ir.Value:
    """What a Reshape does, done to another value."""
    result = node.outputs[0]
    hint = f"{value.name}_reshaped"
    entries = editor.constant(target.numpy(), hint=f"{hint}_shape", before=before)
    return editor.add(
        "Reshape",
        [value, entries],
        {name: attribute.value for name, attribute in node.attributes.items()},
        before=before,
        hint=hint,
        like=value,
        shape=result.shape,
        origin=[node],
        succeeds=node,
    )


def _makers(value: ir.Value) -> list[ir.Node]:
    maker = value.producer()
    return [] if maker is None else [maker]
