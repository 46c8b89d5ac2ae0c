"""The post-dominator tree: where all paths from a vertex meet again, and of what kind they are.

One pass over the vertices, readers first: the immediate post-dominator is the lowest common
ancestor of all readers in the tree built so far. Besides its parent each vertex knows one further
ancestor, chosen as in a skew-binary list, so that a common ancestor is found in logarithmic time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from relayout.fusion.forward_graph import Vertex
from relayout.ops.kind import Kind

ROOT = -1
"""Stands above every vertex whose value leaves the graph or is never read."""


@dataclass(frozen=True, slots=True)
class Dominator:
    """Where a vertex hangs in the tree."""

    parent: int | None
    """The index of the immediate post-dominator."""
    depth: int
    between: Kind
    """The highest kind of an edge on any path to the post-dominator."""


@dataclass(slots=True)
class _TreeVertex:
    parent: int
    depth: int
    between: Kind
    jump: int
    """An ancestor further up."""
    jumped: Kind
    """The highest `between` of the vertices that the jump leaves, this one included."""


@dataclass(slots=True)
class _Tree:
    places: dict[int, _TreeVertex] = field(
        default_factory=lambda: {
            ROOT: _TreeVertex(ROOT, 0, Kind.ELEMENTWISE, ROOT, Kind.ELEMENTWISE)
        }
    )

    def hang(self, index: int, parent: int, between: Kind) -> None:
        above = self.places[parent]
        jump, jumped = parent, between
        beyond = self.places[above.jump]
        if above.depth - beyond.depth == beyond.depth - self.places[beyond.jump].depth:
            jump, jumped = beyond.jump, max(between, above.jumped, beyond.jumped)
        self.places[index] = _TreeVertex(parent, above.depth + 1, between, jump, jumped)

    def meet(self, first: int, second: int) -> tuple[int, Kind]:
        """The lowest common ancestor, and the highest kind on the ways there."""
        highest = Kind.ELEMENTWISE
        one, other = self.places[first], self.places[second]
        while first != second:
            if one.depth < other.depth:
                first, second, one, other = second, first, other, one
            if one.depth > other.depth:
                is_far = self.places[one.jump].depth >= other.depth
                highest = max(highest, one.jumped if is_far else one.between)
                first = one.jump if is_far else one.parent
            elif one.jump != other.jump:
                highest = max(highest, one.jumped, other.jumped)
                first, second = one.jump, other.jump
            else:
                highest = max(highest, one.between, other.between)
                first, second = one.parent, other.parent
            one, other = self.places[first], self.places[second]
        return first, highest


def post_dominators(order: Sequence[Vertex]) -> list[Dominator]:
    """The place of every vertex, by index."""
    tree = _Tree()
    for vertex in reversed(order):
        parent, between = (ROOT, Kind.OPAQUE) if vertex.is_external else _above(vertex, tree)
        tree.hang(vertex.index, parent, between)
    return [_stated(tree.places[vertex.index]) for vertex in order]


def _above(vertex: Vertex, tree: _Tree) -> tuple[int, Kind]:
    if not vertex.uses:
        return ROOT, Kind.ELEMENTWISE
    parent, between = vertex.uses[0][0].index, vertex.uses[0][1]
    for reader, kind in vertex.uses[1:]:
        parent, highest = tree.meet(parent, reader.index)
        between = max(between, highest, kind)
    return parent, between


def _stated(place: _TreeVertex) -> Dominator:
    parent = None if place.parent == ROOT else place.parent
    return Dominator(parent, place.depth, place.between)
