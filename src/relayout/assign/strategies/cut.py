"""A question of two labels as a network, whose minimum cut is the best answer.

A value stored at label 0 that some reader wants at label 1 costs one copy however many readers
there are: an arc from the producer to a hub has the price of the copy, and the hub leads on to
each such reader. The other direction is the mirror image. The flow through the arcs at the
readers is how the price of a copy is shared among them, which is the proof.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from relayout.assign.component import Leaf, Offer
from relayout.assign.strategies.maximum_flow import SINK, SOURCE, Edge, solve_flow

NODE_OF_LABEL = SOURCE, SINK
"""The node of all that has this label whatever is chosen."""
AT_END = -1
"""The edge of arcs from the source or to the sink, which are summed for each node."""


class LabelCopy(NamedTuple):
    """The copy of a value to the order that it has at one label."""

    value: int
    label: int
    order: int
    price: int


_CutDemand: TypeAlias = tuple[int, int, int, int, LabelCopy]
"""The arc at a reader that wants a copy: its tail, its head, its edge, the reader, the copy."""


class MinimumCut(NamedTuple):
    """Whether each node has label 0, and the proof that no other labels cost less."""

    at_zero: list[bool]
    proof: Leaf


class CutNetwork:
    """Nodes that choose between two labels; an arc costs its width if it leads from 0 to 1."""

    def __init__(self) -> None:
        self._edges: list[Edge] = []
        self._demands: list[_CutDemand] = []
        self._supply, self._drain = [0, 0], [0, 0]
        """The width of all arcs from the source to each node, and from each node to the sink."""

    def choice(self, dearer: int = 0) -> int:
        """A new node, for which label 1 costs this much more than label 0."""
        self._supply.append(max(dearer, 0))
        self._drain.append(max(-dearer, 0))
        return len(self._supply) - 1

    def add(self, copy: LabelCopy, producer: int, wanting: Sequence[tuple[int, int]]) -> None:
        """A copy of what a producer stores that nodes want at its label, each for a reader."""
        hub, price = producer, copy.price
        if len(wanting) > 1:
            hub = self.choice()
            self._arc(*_towards(copy.label, producer, hub), price)
        for node, reader in wanting:
            tail, head = (hub, node) if copy.label else (node, hub)
            self._demands.append((tail, head, self._arc(tail, head, price), reader, copy))

    def cut(self) -> MinimumCut:
        """The cut of least cost with the most nodes at label 0.

        What can flow from the source through one node into the sink is not asked of the flow.
        """
        supplied = list(map(min, self._supply, self._drain))
        drained = supplied.copy()
        ends = self._ends()
        flow = solve_flow(len(supplied), ends + self._edges)
        for (tail, head, *_), amount in zip(ends, flow.amounts, strict=False):
            if tail == SOURCE:
                supplied[head] += amount
            else:
                drained[tail] += amount
        offers = self._offers(supplied, drained, flow.amounts[len(ends) :])
        return MinimumCut(flow.source_side, Leaf(1, offers, {}))

    def _arc(self, tail: int, head: int, width: int) -> int:
        """The edge of a new arc; the way back of the edge before it is no edge of its own."""
        if tail == SOURCE:
            self._supply[head] += width
            return AT_END
        if head == SINK:
            self._drain[tail] += width
            return AT_END
        if self._edges and self._edges[-1] == (head, tail, self._edges[-1][2], 0):
            self._edges[-1] = (head, tail, self._edges[-1][2], width)
        else:
            self._edges.append((tail, head, width, 0))
        return len(self._edges) - 1

    def _ends(self) -> list[Edge]:
        """An edge for what a node gets from the source beyond what it gives the sink, or back."""
        return [
            (SOURCE, node, supply - drain, 0) if supply > drain else (node, SINK, drain - supply, 0)
            for node, (supply, drain) in enumerate(zip(self._supply, self._drain, strict=True))
            if supply != drain
        ]

    def _offers(
        self, supplied: list[int], drained: list[int], amounts: list[int]
    ) -> dict[int, tuple[Offer, ...]]:
        """By value what flows through the arcs at its readers.

        Of what is summed at a node, arcs have as much as they can take, the first ones first.
        """
        offers: dict[int, list[Offer]] = {}
        for tail, head, edge, reader, copy in self._demands:
            if edge != AT_END:
                paid = amounts[edge] if self._edges[edge][0] == tail else -amounts[edge]
            else:
                left, node = (supplied, head) if tail == SOURCE else (drained, tail)
                paid = min(left[node], copy.price)
                left[node] -= paid
            if paid > 0:
                offers.setdefault(copy.value, []).append((reader, copy.order, paid))
        return {value: tuple(each) for value, each in offers.items()}


def _towards(label: int, start: int, end: int) -> tuple[int, int]:
    """Arcs lead from producer to reader where label 1 is wanted, and back where label 0 is."""
    return (start, end) if label else (end, start)
