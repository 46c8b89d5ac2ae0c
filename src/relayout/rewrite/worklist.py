"""Applies rewrites until none applies, looking again only at what a rewrite touched."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Sequence
from typing import Protocol

import onnx_ir as ir

from relayout.graph.editing.editor import Editor
from relayout.graph.names import Names
from relayout.graph.region import Region, regions_of
from relayout.ops.registry import computes_only, full_name

VISITS_PER_NODE = 64
"""More visits than this mean that two rewrites undo each other."""


class Rewrite(Protocol):
    """One way to improve a node, which must lower some measure of the graph each time."""

    @property
    def name(self) -> str: ...

    @property
    def op_types(self) -> tuple[str, ...]:
        """The operators it applies to; those of foreign domains with the domain."""
        ...

    def apply(self, node: ir.Node, editor: Editor) -> Iterable[ir.Node] | None:
        """Improve the node if possible; the nodes to look at again, or None if nothing was done."""
        ...


def rewrite_model(model: ir.Model, rewrites: Sequence[Rewrite]) -> Counter[str]:
    """Apply the rewrites to every graph of a model; how often each one was applied."""
    names = Names.of(model)
    applied: Counter[str] = Counter()
    for region in regions_of(model):
        applied += _rewrite_region(region, rewrites, names)
    return applied


def _rewrite_region(region: Region, rewrites: Sequence[Rewrite], names: Names) -> Counter[str]:
    by_op: dict[str, list[Rewrite]] = {}
    for rewrite in rewrites:
        for op_type in rewrite.op_types:
            by_op.setdefault(op_type, []).append(rewrite)
    editor = Editor(region, names, computes_only)
    waiting = deque(node for node in region.graph if _name(node) in by_op)
    present = set(waiting)
    applied: Counter[str] = Counter()
    budget = VISITS_PER_NODE * (len(waiting) + 1)
    while waiting:
        node = waiting.popleft()
        present.discard(node)
        budget -= 1
        if budget < 0:
            raise RuntimeError("rewrites do not come to an end")
        for touched in _improve(node, by_op.get(_name(node), ()), editor, applied):
            # Bodies of control flow are regions of their own, visited after this one.
            if touched.graph is region.graph and touched not in present:
                present.add(touched)
                waiting.append(touched)
    return applied


def _improve(
    node: ir.Node, rewrites: Sequence[Rewrite], editor: Editor, applied: Counter[str]
) -> list[ir.Node]:
    """Apply rewrites to one node until none applies; the nodes to look at again."""
    touched: list[ir.Node] = []
    improved = True
    while improved:
        improved = False
        for rewrite in rewrites:
            if node.graph is None:
                return touched
            more = rewrite.apply(node, editor)
            if more is not None:
                applied[rewrite.name] += 1
                touched.extend(more)
                improved = True
    return touched


def _name(node: ir.Node) -> str:
    return full_name(node.domain, node.op_type)


def consumers(value: ir.Value) -> list[ir.Node]:
    """The nodes that read a value, each once, in a fixed order."""
    return list(dict.fromkeys(use.node for use in value.uses()))
