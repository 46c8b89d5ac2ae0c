"""Maximum flow in exact integers of any size, and the largest source side of a minimum cut.

Dinic's method: flow is pushed along shortest paths only, all of one length before longer ones. No
solver of a library is asked: those take numbers of a limited size, and are loaded in more time
than the networks of most models take here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

SOURCE, SINK = 0, 1

Edge: TypeAlias = tuple[int, int, int, int]
"""One node, another one, and how much may flow from the one to the other and back."""

_FAR = -1
"""The distance of a node that is not reached."""


class Flow(NamedTuple):
    """The net flow of each edge, negative from its second node to its first one, and whether each
    node is on the source's side.
    """

    amounts: list[int]
    source_side: list[bool]


def solve_flow(size: int, edges: Sequence[Edge]) -> Flow:
    """Maximum flow from the source to the sink of a network of so many nodes."""
    residual = _Residual(size, edges)
    while (distances := residual.distances())[SINK] != _FAR:
        residual.push(residual.onward(distances))
    forward = residual.left[::2]
    amounts = [edge[2] - left for edge, left in zip(edges, forward, strict=True)]
    return Flow(amounts, residual.source_side())


class _Residual:
    """What can still flow between nodes.

    Each edge has a number for either direction; the two differ in the last bit.
    """

    def __init__(self, size: int, edges: Sequence[Edge]) -> None:
        self.heads: list[int] = []
        self.left: list[int] = []
        self.leaving: list[list[int]] = [[] for _ in range(size)]
        number = 0
        for tail, head, there, back in edges:
            self.heads += (head, tail)
            self.left += (there, back)
            self.leaving[tail].append(number)
            self.leaving[head].append(number + 1)
            number += 2

    def distances(self) -> list[int]:
        """How many edges with something left lead to each node that is nearer than the sink.

        From the source, since most of its edges are full before long: what they led to need not
        be walked again.
        """
        heads, left, leaving = self.heads, self.left, self.leaving
        found = [_FAR] * len(leaving)
        found[SOURCE] = 0
        nodes = [SOURCE]
        for node in nodes:
            distance = found[node] + 1
            for edge in leaving[node]:
                if left[edge] and found[heads[edge]] == _FAR:
                    other = heads[edge]
                    found[other] = distance
                    if other == SINK:
                        return found
                    nodes.append(other)
        return found

    def source_side(self) -> list[bool]:
        """Whether each node is one from which nothing more can flow to the sink."""
        heads, left, leaving = self.heads, self.left, self.leaving
        found = [True] * len(leaving)
        found[SINK] = False
        nodes = [SINK]
        for node in nodes:
            for edge in leaving[node]:
                other = heads[edge]
                if found[other] and left[edge ^ 1]:
                    found[other] = False
                    nodes.append(other)
        return found

    def onward(self, distances: list[int]) -> dict[int, list[int]]:
        """By node on a shortest path to the sink, the edges that lead on along such paths."""
        left, leaving, heads = self.left, self.leaving, self.heads
        found: dict[int, list[int]] = {SINK: []}
        nodes = [SINK]
        for node in nodes:
            if node == SOURCE:
                break
            before = distances[node] - 1
            for edge in leaving[node]:
                other = heads[edge]
                if distances[other] != before or not left[edge ^ 1]:
                    continue
                if other in found:
                    found[other].append(edge ^ 1)
                else:
                    found[other] = [edge ^ 1]
                    nodes.append(other)
        return found

    def push(self, onward: dict[int, list[int]]) -> None:
        """Fill all these paths; what leads on no more is taken out of them."""
        heads, left = self.heads, self.left
        path: list[int] = []
        node = SOURCE
        while True:
            edges = onward[node]
            while edges and not left[edges[-1]]:
                edges.pop()
            if edges:
                path.append(edges[-1])
                node = heads[edges[-1]]
            elif path:
                node = heads[path.pop() ^ 1]
                onward[node].pop()
            else:
                return
            if node == SINK:
                path = self._fill(path)
                node = heads[path[-1]] if path else SOURCE

    def _fill(self, path: list[int]) -> list[int]:
        """Push what a path can take; the part of it before the first edge that is full."""
        left = self.left
        amount = min([left[edge] for edge in path])
        for edge in path:
            left[edge] -= amount
            left[edge ^ 1] += amount
        return path[: next(place for place, edge in enumerate(path) if not left[edge])]
