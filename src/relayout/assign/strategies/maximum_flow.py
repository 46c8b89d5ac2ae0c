"""Maximum flow in exact integers of any size, and the largest source side of a minimum cut.

Dinic's method: flow is pushed along shortest paths only, all of one length before longer ones. No
solver of a library is asked: those take numbers of a limited size, and are loaded in more time
than the networks of most models take here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

SOURCE, SINK = 0, 1

Arc: TypeAlias = tuple[int, int]
"""From one node to another."""

_FAR = -1
"""The distance of a node that is not reached."""


class Flow(NamedTuple):
    """The net flow of each arc, never against it, and whether each node is on the source's side."""

    amounts: dict[Arc, int]
    source_side: list[bool]


def solve_flow(size: int, capacities: Mapping[Arc, int]) -> Flow:
    """Maximum flow from the source to the sink of a network of so many nodes."""
    residual = _Residual(size, capacities)
    while (distances := residual.distances())[SINK] != _FAR:
        residual.push(distances)
    amounts = {arc: max(0, capacities[arc] - left) for arc, left in residual.items()}
    return Flow(amounts, residual.source_side())


class _Residual:
    """What can still flow between nodes.

    Edges are numbered so that those of both directions between two nodes differ in the last bit.
    """

    def __init__(self, size: int, capacities: Mapping[Arc, int]) -> None:
        self.heads: list[int] = []
        self.left: list[int] = []
        self.leaving: list[list[int]] = [[] for _ in range(size)]
        self.numbers: dict[Arc, int] = {}
        for (tail, head), capacity in capacities.items():
            if (tail, head) not in self.numbers:
                self._join(tail, head)
            self.left[self.numbers[tail, head]] = capacity
        self.given = capacities

    def _join(self, tail: int, head: int) -> None:
        for start, end in ((tail, head), (head, tail)):
            self.numbers[start, end] = len(self.heads)
            self.leaving[start].append(len(self.heads))
            self.heads.append(end)
            self.left.append(0)

    def items(self) -> list[tuple[Arc, int]]:
        """The arcs of the network with what is left of each."""
        return [(arc, self.left[self.numbers[arc]]) for arc in self.given]

    def distances(self) -> list[int]:
        """How many edges with something left lead to each node that is nearer than the sink.

        From the source, since most of its edges are full before long: what they led to need not
        be walked again.
        """
        heads, left = self.heads, self.left
        found = [_FAR] * len(self.leaving)
        found[SOURCE] = 0
        nodes = [SOURCE]
        for node in nodes:
            distance = found[node] + 1
            for edge in self.leaving[node]:
                if left[edge] and found[heads[edge]] == _FAR:
                    other = heads[edge]
                    found[other] = distance
                    if other == SINK:
                        return found
                    nodes.append(other)
        return found

    def source_side(self) -> list[bool]:
        """Whether each node is one from which nothing more can flow to the sink."""
        heads, left = self.heads, self.left
        found = [True] * len(self.leaving)
        found[SINK] = False
        nodes = [SINK]
        for node in nodes:
            for edge in self.leaving[node]:
                other = heads[edge]
                if found[other] and left[edge ^ 1]:
                    found[other] = False
                    nodes.append(other)
        return found

    def push(self, distances: list[int]) -> None:
        """Fill all paths to the sink on which each edge leads one step further from the source.

        An edge that leads no further is not looked at again: each node keeps its place among them.
        """
        heads, left = self.heads, self.left
        places = [0] * len(distances)
        path: list[int] = []
        node = SOURCE
        while True:
            if node == SINK:
                path = self._fill(path)
                node = heads[path[-1]] if path else SOURCE
            edges, place, further = self.leaving[node], places[node], distances[node] + 1
            while place < len(edges):
                edge = edges[place]
                if left[edge] and distances[heads[edge]] == further:
                    break
                place += 1
            places[node] = place
            if place < len(edges):
                path.append(edge)
                node = heads[edge]
            elif path:
                node = heads[path.pop() ^ 1]
                places[node] += 1
            else:
                return

    def _fill(self, path: list[int]) -> list[int]:
        """Push what a path can take; the part of it before the first edge that is full."""
        amount = min([self.left[edge] for edge in path])
        for edge in path:
            self.left[edge] -= amount
            self.left[edge ^ 1] += amount
        return path[: next(place for place, edge in enumerate(path) if not self.left[edge])]
