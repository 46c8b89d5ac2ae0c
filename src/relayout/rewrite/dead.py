"""Nodes whose results nothing reads."""

from __future__ import annotations

from collections import Counter

import onnx_ir as ir

from relayout.graph.editing.editor import Editor
from relayout.graph.names import Names
from relayout.graph.region import regions_of
from relayout.ops.registry import computes_only

REMOVE_DEAD = "remove dead node"


def remove_dead(model: ir.Model) -> Counter[str]:
    """Remove every dead node that only computes, and the initialisers that die with it."""
    names = Names.of(model)
    applied: Counter[str] = Counter()
    for region in regions_of(model):
        editor = Editor(region, names, computes_only)
        for node in reversed(region.graph):
            applied[REMOVE_DEAD] += editor.discard(node)
    return applied
