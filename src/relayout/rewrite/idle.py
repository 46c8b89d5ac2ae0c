"""Operators that do nothing here give way to what they read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import onnx_ir as ir

from relayout.graph.editing.editor import Editor
from relayout.graph.read import constant_of, shape_of
from relayout.rewrite.worklist import consumers


@dataclass(frozen=True, slots=True)
class DropIdle:
    """A padding of no elements goes, and so does a part that is the whole.

    Given:  p = Pad(x, [0, 0, 0, 0]); y = f(p)
    Result: y = f(x)
    """

    name: str = "drop what does nothing"
    op_types: tuple[str, ...] = ("Concat", "Expand", "Pad", "Slice", "Tile")

    def apply(self, node: ir.Node, editor: Editor) -> Iterable[ir.Node] | None:
        source = node.inputs[0]
        if source is None or not _DOES_NOTHING[node.op_type](node):
            return None
        touched = consumers(node.outputs[0])
        editor.substitute(node.outputs[0], source, origin=node)
        editor.discard(node)
        return touched


def _pads_nothing(node: ir.Node) -> bool:
    pads = _numbers(node, 1, "pads")
    return pads is not None and not any(pads)


def _slices_all(node: ir.Node) -> bool:
    """As long as before along each axis, and not from back to front."""
    steps = _numbers(node, 4, "steps") if _has(node, 4) else [1]
    return _keeps_shape(node) and steps is not None and all(step == 1 for step in steps)


def _keeps_shape(node: ir.Node) -> bool:
    before, after = shape_of(node.inputs[0]), shape_of(node.outputs[0])
    return before is not None and before == after and None not in before


def _joins_one(node: ir.Node) -> bool:
    return len(node.inputs) == 1


_DOES_NOTHING: Mapping[str, Callable[[ir.Node], bool]] = {
    "Concat": _joins_one,
    "Expand": _keeps_shape,
    "Pad": _pads_nothing,
    "Slice": _slices_all,
    "Tile": _keeps_shape,
}


def _has(node: ir.Node, index: int) -> bool:
    return len(node.inputs) > index and node.inputs[index] is not None


def _numbers(node: ir.Node, index: int, name: str) -> list[int] | None:
    """Whole numbers that are an operand, or were an attribute once, if they are known."""
    if len(node.inputs) < 2:
        attribute = node.attributes.get(name)
        return None if attribute is None else list(attribute.as_ints())
    tensor = constant_of(node.inputs[index])
    return None if tensor is None else [int(number) for number in tensor.numpy().reshape(-1)]
