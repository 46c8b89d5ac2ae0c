"""What onnx's inference mistakes is stated, so that what follows from it can be checked."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import onnx_ir as ir

from relayout.graph.editing.editor import Editor


@dataclass(frozen=True, slots=True)
class StateForInference:
    """A node whose shape onnx's inference mistakes is written in the form that it reads rightly.

    Given:  y = STFT(x, step, , length)
    Result: y = STFT<onesided=1>(x, step, , length)

    By default a spectrum has one side, and inference takes it for two; it passes over axes of a
    Squeeze that follow a larger one. The checker refuses shapes that contradict its inference.
    """

    name: str = "state what inference mistakes"
    op_types: tuple[str, ...] = ("STFT", "Squeeze")

    def apply(self, node: ir.Node, editor: Editor) -> Iterable[ir.Node] | None:
        if node.op_type == "STFT":
            return _state_sides(node, editor)
        return _sort_axes(node, editor)


def _state_sides(node: ir.Node, editor: Editor) -> Iterable[ir.Node] | None:
    if "onesided" in node.attributes:
        return None
    editor.set_attribute(node, "onesided", 1)
    return ()


def _sort_axes(node: ir.Node, editor: Editor) -> Iterable[ir.Node] | None:
    attribute = node.attributes.get("axes")
    if attribute is None or attribute.is_ref():
        return None
    axes = tuple(attribute.as_ints())
    if axes == tuple(sorted(axes)):
        return None
    editor.set_attribute(node, "axes", tuple(sorted(axes)))
    return ()
