"""Shapes that follow from constants which were computed when the model was read."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import onnx_ir as ir

from relayout.graph.editing.editor import Editor
from relayout.graph.editing.learning import sharpen
from relayout.graph.read import constant_of, lengths_of
from relayout.graph.region import subgraphs_of
from relayout.graph.shapes.node import inferred_shapes
from relayout.ops.registry import FACTS, facts_of
from relayout.rewrite.refine import LARGEST_KEPT, is_vague
from relayout.rewrite.worklist import consumers


@dataclass(frozen=True, slots=True)
class LearnShape:
    """A shape that becomes known when the operand it depends on has been folded.

    Given:  y = Pad(x, p), where p has just become a constant
    Result: the same, and the lengths of y are known

    The consumers of y are visited as well, so that the arithmetic of shapes is folded in one sweep.
    """

    name: str = "learn a shape"
    op_types: tuple[str, ...] = tuple(name for (domain, name), _ in FACTS.items() if not domain)
    learned: set[ir.Value] = field(default_factory=set)

    def apply(self, node: ir.Node, editor: Editor) -> Iterable[ir.Node] | None:
        vague = [value for value in node.outputs if value.name and is_vague(value)]
        if not vague or any(subgraphs_of(node)) or not self._is_determined(node):
            return None
        found = inferred_shapes(node, editor.region.version, LARGEST_KEPT)
        news = [
            v for v in vague if (shape := found.get(v.name or "")) and sharpen(v, lengths_of(shape))
        ]
        self.learned.update(news)
        return [consumer for value in news for consumer in consumers(value)] if news else None

    def _is_determined(self, node: ir.Node) -> bool:
        """Whether the shape follows from constants, or something new is known of it."""
        if facts_of(node).lengths.is_shaped_by_constants:
            return all(constant_of(value) is not None for value in node.inputs[1:] if value)
        return not self.learned.isdisjoint(node.inputs)
