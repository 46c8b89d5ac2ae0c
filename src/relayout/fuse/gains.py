"""What two clusters would save as one kernel, or why they cannot be one."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from relayout.fuse.clusters import Clusters
from relayout.fuse.groups import Limits
from relayout.fuse.kernel import ANCHORS, Kernel
from relayout.fuse.repeats import Rates, repeated_seconds
from relayout.fuse.siblings import are_siblings
from relayout.fuse.sketch import Result
from relayout.fuse.words import Code, Why
from relayout.ops.iteration import Role

MOST_ARGUMENTS = 128
"""No merge makes a kernel of more arguments than devices commonly take."""


@dataclass(frozen=True, slots=True)
class Cost:
    moved: int
    """Bytes."""
    kernels: int
    arguments: int
    again: float
    """Seconds for work that is done repeatedly."""


@dataclass(frozen=True, slots=True)
class Gain:
    moved: int
    kernels: int


class Gains:
    def __init__(self, clusters: Clusters, limits: Limits, rates: Rates) -> None:
        self._clusters = clusters
        self._sketch = clusters.sketch
        self._limits = limits
        self._most_arguments = limits.max_args or MOST_ARGUMENTS
        self._rates = rates
        self._costs: dict[int, Cost] = {}

    def of(self, first: int, second: int) -> Gain | Why:
        why = self._clash(first, second)
        if why is not None:
            return why
        members = self._clusters.together(first, second)
        results = list(self._clusters.results(members, (first, second)))
        merged = self._cost(members, results)
        if isinstance(merged, Why):
            return merged
        return self._gain(merged, [self.cost(first), self.cost(second)])

    def of_repeating(self, cluster: int, readers: Sequence[int]) -> Gain | Why:
        """What is saved if all that read a cluster run it themselves."""
        moved = kernels = 0
        for reader in readers:
            results = list(self._clusters.results(self._clusters.members[reader], (reader,)))
            grown = self._cost(self._clusters.together(cluster, reader), results)
            if isinstance(grown, Why):
                return grown
            moved += grown.moved
            kernels += grown.kernels
        costs = [self.cost(each) for each in (cluster, *readers)]
        return Gain(
            sum(cost.moved for cost in costs) - moved,
            sum(cost.kernels for cost in costs) - kernels,
        )

    def _gain(self, merged: Cost, costs: Sequence[Cost]) -> Gain | Why:
        if merged.arguments > max(self._most_arguments, *(cost.arguments for cost in costs)):
            return Why(Code.ARGUMENTS)
        gain = Gain(
            sum(cost.moved for cost in costs) - merged.moved,
            sum(cost.kernels for cost in costs) - merged.kernels,
        )
        before = sum(cost.again for cost in costs)
        saved = self._rates.seconds(max(0, gain.moved), gain.kernels)
        is_worse = math.isfinite(before) and merged.again - before > saved
        return Why(Code.REPEAT) if is_worse else gain

    def cost(self, cluster: int) -> Cost:
        known = self._costs.get(cluster)
        if known is None:
            members = self._clusters.members[cluster]
            results = list(self._clusters.results(members, (cluster,)))
            kernel = Kernel(self._sketch, members, {number for number, _result in results})
            kernel.refusal()
            known = self._measured(members, results, frozenset(kernel.ties))
            self._costs[cluster] = known
        return known

    def forget(self, clusters: Iterable[int]) -> None:
        for cluster in clusters:
            self._costs.pop(cluster, None)

    def _clash(self, first: int, second: int) -> Why | None:
        """What can be told at a glance."""
        members = (*self._clusters.members[first], *self._clusters.members[second])
        operators = [self._sketch.operators[number] for number in members]
        opaque = next((each.number for each in operators if each.role is Role.OPAQUE), None)
        if opaque is not None:
            return Why(Code.OPAQUE, opaque)
        anchors = [each for each in operators if each.role in ANCHORS]
        if len(anchors) > 1 and not are_siblings(anchors):
            return Why(Code.TWO_ANCHORS, anchors[-1].number)
        return None

    def _cost(self, members: Sequence[int], results: Sequence[tuple[int, Result]]) -> Cost | Why:
        if len(members) > self._limits.max_depth:
            return Why(Code.DEPTH)
        kernel = Kernel(self._sketch, members, {number for number, _result in results})
        why = kernel.refusal()
        return self._measured(members, results, frozenset(kernel.ties)) if why is None else why

    def _measured(
        self, members: Sequence[int], results: Sequence[tuple[int, Result]], tied: frozenset[int]
    ) -> Cost:
        if all(self._sketch.operators[number].is_view for number in members):
            return Cost(0, 0, 0, 0.0)
        operands = self._sketch.outside_operands(members, set(members))
        again = repeated_seconds(self._sketch, members, tied, self._rates)
        moved = sum(operands.values()) + sum(result.size for _number, result in results)
        return Cost(moved, 1, len(operands) + len(results), again)
