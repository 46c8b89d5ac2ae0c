"""The forward graph in the form of the founding document, with what the phases made of it."""

from __future__ import annotations

from relayout.fusion.faithful import FusedRegion, fuse
from relayout.fusion.forward_graph import Vertex
from relayout.fusion.groups import Limits
from relayout.fusion.settled import Settled
from relayout.fusion.unions import Union
from relayout.graph.region import Region


def dump(region: Region, limits: Limits | None = None, settled: Settled | None = None) -> str:
    """One line for each vertex, then one for each group."""
    fused = fuse(region, limits or Limits(), settled or Settled())
    numbers: dict[Union, int] = {}
    for union in fused.unions:
        numbers.setdefault(union.find(), len(numbers))
    lines = [_vertex_line(vertex, fused, numbers) for vertex in fused.order]
    lines += [_group_line(union, number) for union, number in numbers.items()]
    return "\n".join(lines)


def _vertex_line(vertex: Vertex, fused: FusedRegion, numbers: dict[Union, int]) -> str:
    uses = ", ".join(f"{reader.index}:{int(kind)}" for reader, kind in vertex.uses)
    place = fused.dominators[vertex.index]
    external = " extern" if vertex.is_external else ""
    parent = "-" if place.parent is None else place.parent
    name = vertex.expression.name or vertex.expression.tag.value
    return (
        f"node[{vertex.index}], {name}, kind={int(vertex.kind)}{external} outputs=[{uses}]"
        f" ipdom={parent} depth={place.depth} between={int(place.between)}"
        f" group={numbers[fused.unions[vertex.index].find()]}"
    )


def _group_line(union: Union, number: int) -> str:
    anchor = "" if union.anchor is None else f" anchor={union.anchor.index}"
    return (
        f"group {number} root={union.root.index}{anchor} kind={int(union.kind)} nodes={union.size}"
    )
