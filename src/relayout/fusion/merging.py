"""Merges clusters where that saves most, until nothing is saved any more."""

from __future__ import annotations

import heapq
from bisect import bisect_left
from collections.abc import Iterable

import onnx_ir as ir

from relayout.fusion.clusters import Clusters
from relayout.fusion.codes import Code, Why
from relayout.fusion.common_loop import ANCHORS, ROWS
from relayout.fusion.gains import Gains
from relayout.fusion.siblings import sibling_key
from relayout.fusion.sketch import Sketch, SketchOperator, count_of
from relayout.graph.read import constant_of
from relayout.ops.kernels import Role

MOST_READERS = 64
"""A value that more clusters read is written to memory for them."""

NEIGHBOURS = 2
"""How many readers of a tensor on either side are asked whether they are siblings."""


class Merging:
    def __init__(self, clusters: Clusters, gains: Gains) -> None:
        self._clusters = clusters
        self._gains = gains
        self._queue: list[tuple[int, int, int, int]] = []
        """Pairs by what they about save, then by the size of the cluster they would be.

        Small ones first: so no cluster is looked at more often than its size doubles.
        """
        self._readers = _readers_by_value(clusters.sketch)
        self._loops: dict[int, object] = {}
        self.refusals: dict[tuple[int, int], Why] = {}
        """Why two clusters were not merged, the one that runs first named first."""

    def run(self, start: Iterable[int]) -> None:
        for cluster in start:
            self._propose_readers(cluster)
            self._propose_siblings(cluster)
        while self._queue:
            *_priority, first, second = heapq.heappop(self._queue)
            if first in self._clusters.members and second in self._clusters.members:
                self._try(*sorted((first, second), key=self._clusters.rank))

    def forget(self, clusters: Iterable[int]) -> None:
        """What was found about clusters that have been changed since."""
        changed = set(clusters)
        self._gains.forget(changed)
        for pair in [pair for pair in self.refusals if not changed.isdisjoint(pair)]:
            del self.refusals[pair]

    def _try(self, first: int, second: int) -> None:
        if (first, second) in self.refusals:
            return
        gain = self._gains.of(first, second)
        if isinstance(gain, Why):
            self.refusals[first, second] = gain
            return
        is_edge = second in self._clusters.after[first]
        if gain.moved < 0 or not (is_edge or gain.moved):
            self.refusals[first, second] = Why(Code.NO_GAIN)
            return
        merged = self._clusters.merge(first, second)
        if merged is None:
            self.refusals[first, second] = Why(Code.CYCLE)
        else:
            self._gains.keep(merged, gain)
            self._propose_all(merged)

    def _propose_all(self, cluster: int) -> None:
        self._propose_readers(cluster)
        for other in self._clusters.before[cluster]:
            if len(self._clusters.after[other]) <= MOST_READERS:
                self._propose(other, cluster)
        self._propose_siblings(cluster)

    def _propose_readers(self, cluster: int) -> None:
        after = self._clusters.after[cluster]
        for other in after if len(after) <= MOST_READERS else ():
            self._propose(cluster, other)

    def _propose_siblings(self, cluster: int) -> None:
        for other, shared in self._siblings(cluster).items():
            self._propose(cluster, other, shared)

    def _propose(self, first: int, second: int, shared: int = 0) -> None:
        saved = max(shared, self._clusters.estimate(first, second))
        size = len(self._clusters.members[first]) + len(self._clusters.members[second])
        heapq.heappush(self._queue, (-saved, size, first, second))

    def _siblings(self, cluster: int) -> dict[int, int]:
        """Clusters that read a tensor this one reads, near it, and that have the same loop.

        With the size of the tensor; those that read each other's results are not siblings.
        """
        linked = {cluster, *self._clusters.after[cluster], *self._clusters.before[cluster]}
        apart: dict[int, int] = {}
        for value, size in self._gains.summaries.of(cluster).operands.items():
            for reader in self._near(value, cluster):
                apart.update((h, size) for h in self._clusters.homes[reader] if h not in linked)
        loop = self._loop(cluster) if apart else None
        if loop is None:
            return {}
        return {other: size for other, size in apart.items() if self._loop(other) == loop}

    def _near(self, value: ir.Value, cluster: int) -> list[int]:
        """The operators that read a value just before or just after this cluster does."""
        readers = self._readers.get(value, [])
        if len(readers) <= NEIGHBOURS:
            return readers
        members = self._clusters.members[cluster]
        low, high = bisect_left(readers, members[0]), bisect_left(readers, members[-1])
        before, after = max(0, low - NEIGHBOURS), high + NEIGHBOURS + 1
        if after - before <= 4 * NEIGHBOURS:
            return readers[before:after]
        return readers[before : low + NEIGHBOURS] + readers[high - NEIGHBOURS : after]

    def _loop(self, cluster: int) -> object:
        """What the kernels of siblings have in common; None for one that has no siblings."""
        if cluster not in self._loops:
            self._loops[cluster] = self._loop_of(cluster)
        return self._loops[cluster]

    def _loop_of(self, cluster: int) -> object:
        operators = [self._clusters.sketch.operators[n] for n in self._clusters.members[cluster]]
        leads = [each for each in operators if each.role in ANCHORS]
        if leads:
            return sibling_key(leads[0])
        if any(each.role is Role.OPAQUE for each in operators):
            return None
        return next((_space(each) for each in operators if each.role in ROWS), operators[-1].count)


def _space(operator: SketchOperator) -> object:
    return count_of(operator.operand_shape(0))


def _readers_by_value(sketch: Sketch) -> dict[ir.Value, list[int]]:
    """The consumers of each tensor that is not constant and has several."""
    readers: dict[ir.Value, list[int]] = {}
    for operator in sketch.operators:
        for value in dict.fromkeys(operator.node.inputs):
            if value is not None:
                readers.setdefault(value, []).append(operator.number)
    return {
        value: numbers
        for value, numbers in readers.items()
        if len(numbers) > 1 and constant_of(value) is None
    }
