"""Activations that exporters spell out become one operator."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from relayout.graph.editing.editor import Editor
from relayout.graph.read import constant_of, is_op
from relayout.layout.transport import Changes
from relayout.rewrite.worklist import consumers
from relayout.targets.ort import CONTRIB_DOMAIN


@dataclass(frozen=True, slots=True)
class RaiseGelu:
    """A GELU spelt out with Erf becomes one operator.

    Given:  e = Erf(Div(x, sqrt(2))); y = Mul(Mul(x, Add(e, 1)), 0.5), the factors in any order
    Result: y = com.microsoft.Gelu(x)
    """

    name: str = "raise to GELU"
    op_types: tuple[str, ...] = ("Erf",)

    def apply(self, node: ir.Node, editor: Editor) -> Iterable[ir.Node] | None:
        source = _scaled(node.inputs[0], 1 / math.sqrt(2))
        raised = _only_consumer(node.outputs[0], "Add")
        if source is None or raised is None or not _is_number(_other(raised, node), 1.0):
            return None
        last = _product_with_half(raised, source)
        return None if last is None else _stated(last, source, Changes(op_type="Gelu"), editor)


@dataclass(frozen=True, slots=True)
class RaiseSilu:
    """A product with its own sigmoid becomes one operator.

    Given:  s = Sigmoid(x); y = Mul(x, s)
    Result: y = com.microsoft.QuickGelu<alpha=1>(x)
    """

    name: str = "raise to SiLU"
    op_types: tuple[str, ...] = ("Sigmoid",)

    def apply(self, node: ir.Node, editor: Editor) -> Iterable[ir.Node] | None:
        source, last = node.inputs[0], _only_consumer(node.outputs[0], "Mul")
        if source is None or last is None or _other(last, node) is not source:
            return None
        return _stated(last, source, Changes({"alpha": 1.0}, op_type="QuickGelu"), editor)


def _stated(
    last: ir.Node, source: ir.Value, changes: Changes, editor: Editor
) -> Iterable[ir.Node] | None:
    """Let one operator of `source` stand for the node that gives the result."""
    own = Changes(changes.attributes, op_type=changes.op_type, domain=CONTRIB_DOMAIN)
    (result,) = editor.adapted(last, [source], [last.outputs[0].shape], own)
    touched = consumers(last.outputs[0])
    editor.substitute(last.outputs[0], result, origin=last)
    editor.discard(last)
    return touched


def _product_with_half(raised: ir.Node, source: ir.Value) -> ir.Node | None:
    """The node that gives the product of a node's result, its source and 1/2, in any order."""
    first = _only_consumer(raised.outputs[0], "Mul", "Div")
    if first is None:
        return None
    if is_op(first, "Mul") and _scaled(_other(first, raised), 0.5) is source:
        return first
    second = _only_consumer(first.outputs[0], "Mul", "Div")
    if second is None:
        return None
    if is_op(first, "Mul") and _other(first, raised) is source:
        is_half = _scaled(second.outputs[0], 0.5) is first.outputs[0]
    else:
        is_half = _scaled(first.outputs[0], 0.5) is raised.outputs[0]
        is_half = is_half and is_op(second, "Mul") and _other(second, first) is source
    return second if is_half else None


def _scaled(value: ir.Value | None, factor: float) -> ir.Value | None:
    """What a value is so many times, if it is a product or a quotient with such a number."""
    node = None if value is None else value.producer()
    if node is None or not is_op(node, "Mul", "Div"):
        return None
    first, second = node.inputs
    if is_op(node, "Div"):
        return first if _is_number(second, 1 / factor) else None
    if _is_number(second, factor):
        return first
    return second if _is_number(first, factor) else None


def _is_number(value: ir.Value | None, wanted: float) -> bool:
    """Whether a value is one number, as near to the wanted one as its type can hold."""
    tensor = constant_of(value)
    if tensor is None or tensor.size != 1 or not tensor.dtype.is_floating_point():
        return False
    array = tensor.numpy()
    bound = 1e-2 if array.dtype.itemsize < 4 else 1e-6
    return math.isclose(float(array.astype(np.float64).reshape(())), wanted, rel_tol=bound)


def _other(node: ir.Node, operand: ir.Node) -> ir.Value | None:
    """The operand of a node of two that another node did not write."""
    first, second = node.inputs
    return second if first is not None and first.producer() is operand else first


def _only_consumer(value: ir.Value, *op_types: str) -> ir.Node | None:
    """The one node that reads a value, if it is one of these operators."""
    if len(value.uses()) != 1 or value.is_graph_output():
        return None
    (use,) = value.uses()
    return use.node if is_op(use.node, *op_types) else None
