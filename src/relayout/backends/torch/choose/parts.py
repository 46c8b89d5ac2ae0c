"""Groups of nodes as what can be realised at once: a form of the libraries, and what is left."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import heapify, heappop, heappush

import onnx_ir as ir

from relayout.backends.torch.program.program import EAGER, ProgramStep
from relayout.backends.torch.providers.library_group import LibraryGroup, read_library_group
from relayout.graph.read import is_op, view_of
from relayout.graph.region import captured_by
from relayout.ops.fusing import fuses_as
from relayout.ops.kind import Kind


@dataclass(frozen=True, slots=True)
class GroupPart:
    """Nodes that are done together."""

    nodes: tuple[ir.Node, ...]
    fused: LibraryGroup | None = None
    """What libraries have one kernel for, if that is what the nodes are."""


def parts_of(graph: ir.Graph, groups: Iterable[Sequence[ir.Node]]) -> list[GroupPart]:
    """The parts of all groups in an order in which they can run; nodes of no group are alone."""
    found = [part for nodes in groups for part in split(nodes)]
    grouped = {node for part in found for node in part.nodes}
    found += [GroupPart((node,)) for node in graph if node not in grouped]
    return _in_order(_with_joins(found, graph.opset_imports), graph)


def _with_joins(parts: Sequence[GroupPart], opsets: Mapping[str, int]) -> list[GroupPart]:
    """A Concat takes along what computes its operands alone, which then is not stored twice."""
    tails = {part.nodes[-1]: _tail(part, opsets) for part in parts}
    taken: dict[ir.Node, tuple[ir.Node, ...]] = {}
    for part in parts:
        (first, *more) = part.nodes
        if not more and is_op(first, "Concat"):
            makers = dict.fromkeys(v.producer() for v in first.inputs if v is not None)
            alone = [node for node in makers if node in tails and _is_read_once(node)]
            taken[first] = tuple(node for maker in alone for node in tails[maker])
    gone = {node for nodes in taken.values() for node in nodes}
    left = [(part, tuple(n for n in part.nodes if n not in gone)) for part in parts]
    return [
        replace(part, nodes=(*taken.get(part.nodes[-1], ()), *nodes))
        for part, nodes in left
        if nodes
    ]


def _tail(part: GroupPart, opsets: Mapping[str, int]) -> tuple[ir.Node, ...]:
    """The nodes at the end of a part that compute element by element, if no kernel has them.

    What they compute on the way is read by them alone: who else reads it may come before the join.
    """
    if part.fused is not None:
        return ()
    nodes = part.nodes[is_op(part.nodes[0], "ConvTranspose") :]
    kinds = [fuses_as(view_of(node, opsets)).kind for node in nodes]
    is_closed = all(_is_read_within(node, nodes) for node in nodes[:-1])
    return nodes if is_closed and max(kinds, default=Kind.OPAQUE) <= Kind.BROADCAST else ()


def _is_read_within(node: ir.Node, nodes: Sequence[ir.Node]) -> bool:
    return all(
        not value.is_graph_output() and all(use.node in nodes for use in value.uses())
        for value in node.outputs
    )


def _is_read_once(node: ir.Node) -> bool:
    (result, *more) = node.outputs
    return not more and len(result.uses()) == 1 and not result.is_graph_output()


def split(nodes: Sequence[ir.Node]) -> list[GroupPart]:
    """What libraries take of a group, what it needs for that before it, and the rest after it."""
    fused = read_library_group(nodes)
    if fused is None:
        return [GroupPart(tuple(nodes))]
    needed = _needed(fused, nodes)
    taken = {*fused.nodes, *needed}
    rest = tuple(node for node in nodes if node not in taken)
    parts = [GroupPart(tuple(needed)), GroupPart(fused.nodes, fused), GroupPart(rest)]
    return [part for part in parts if part.nodes]


def _needed(fused: LibraryGroup, nodes: Sequence[ir.Node]) -> list[ir.Node]:
    """The nodes of a group that its library form reads, directly or not."""
    own = set(fused.nodes)
    wanted = {value.producer() for node in fused.nodes for value in node.inputs if value}
    needed = []
    for node in reversed(nodes):
        if node in wanted and node not in own:
            needed.append(node)
            wanted |= {value.producer() for value in node.inputs if value}
    return needed[::-1]


def runs_of(
    steps: Sequence[ProgramStep], parts: Sequence[GroupPart]
) -> list[tuple[ProgramStep, ...]]:
    """The steps, with those of one part that nothing realises so far taken together."""
    home = {node: number for number, part in enumerate(parts) for node in part.nodes}
    runs: list[tuple[ProgramStep, ...]] = []
    for step in steps:
        before = runs[-1][-1] if runs else None
        is_free = before is not None and step.realisation is before.realisation is EAGER
        if is_free and before is not None and home[step.nodes[0]] == home[before.nodes[0]]:
            runs[-1] = (*runs[-1], step)
        else:
            runs.append((step,))
    return runs


def _in_order(parts: Sequence[GroupPart], graph: ir.Graph) -> list[GroupPart]:
    """Parts after all that they read, otherwise in the order of their last nodes."""
    place = {node: number for number, node in enumerate(graph)}
    home = {node: number for number, part in enumerate(parts) for node in part.nodes}
    readers: list[dict[int, None]] = [{} for _ in parts]
    missing = [0] * len(parts)
    for number, part in enumerate(parts):
        for source in _sources(part, home):
            readers[source][number] = None
            missing[number] += 1
    ready = [(place[part.nodes[-1]], n) for n, part in enumerate(parts) if not missing[n]]
    heapify(ready)
    ordered = []
    while ready:
        _, number = heappop(ready)
        ordered.append(parts[number])
        for reader in readers[number]:
            missing[reader] -= 1
            if not missing[reader]:
                heappush(ready, (place[parts[reader].nodes[-1]], reader))
    return ordered


def _sources(part: GroupPart, home: dict[ir.Node, int]) -> list[int]:
    """The other parts that a part reads, each once."""
    own = home[part.nodes[0]]
    read = [v for node in part.nodes for v in (*node.inputs, *captured_by(node)) if v is not None]
    producers = (value.producer() for value in read)
    found = dict.fromkeys(home[node] for node in producers if node in home)
    return [number for number in found if number != own]
