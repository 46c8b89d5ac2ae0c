"""Operators that do nothing here give way to what they read."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import onnx_ir as ir

from relayout.graph.editing.editor import Editor
from relayout.graph.read import constant_of
from relayout.rewrite.worklist import consumers


@dataclass(frozen=True, slots=True)
class DropPad:
    """A padding of no elements goes.

    Given:  p = Pad(x, [0, 0, 0, 0]); y = f(p)
    Result: y = f(x)
    """

    name: str = "drop an empty padding"
    op_types: tuple[str, ...] = ("Pad",)

    def apply(self, node: ir.Node, editor: Editor) -> Iterable[ir.Node] | None:
        source, pads = node.inputs[0], _pads(node)
        if source is None or pads is None or any(pads):
            return None
        touched = consumers(node.outputs[0])
        editor.substitute(node.outputs[0], source, origin=node)
        editor.discard(node)
        return touched


def _pads(node: ir.Node) -> list[int] | None:
    """How much is added at each side, if it is known."""
    if len(node.inputs) < 2:
        attribute = node.attributes.get("pads")
        return None if attribute is None else list(attribute.as_ints())
    tensor = constant_of(node.inputs[1])
    return None if tensor is None else [int(length) for length in tensor.numpy().reshape(-1)]
