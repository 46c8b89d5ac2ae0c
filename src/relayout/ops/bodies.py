"""Nodes with bodies, as far as orders can cross the borders of these."""

from __future__ import annotations

import onnx_ir as ir

from relayout.graph.read import NodeView
from relayout.ops.control import Tie
from relayout.ops.registry import facts_of


def has_ties(node: ir.Node) -> bool:
    """Whether orders can cross the borders of a node's bodies."""
    return facts_of(node).ties is not None


def ties_of(view: NodeView) -> list[Tie]:
    """What must be stored alike on both sides of the borders of a node, as far as it is known."""
    ties = facts_of(view.node).ties
    return [] if ties is None else [tie for tie in ties(view) if tie.is_known]
