"""What two clusters would save as one kernel, or why they cannot be one."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from relayout.fusion.clusters import Clusters
from relayout.fusion.codes import Code, Why
from relayout.fusion.common_loop import CommonLoop
from relayout.fusion.groups import Abilities, Limits
from relayout.fusion.repeats import Rates, repeated_seconds
from relayout.fusion.siblings import are_siblings
from relayout.fusion.summaries import Summaries, Summary

MOST_ARGUMENTS = 128
"""No merge makes a kernel of more arguments than devices commonly take."""


@dataclass(frozen=True, slots=True)
class Gain:
    moved: int
    """Bytes that are not moved any more."""
    kernels: int
    summary: Summary
    """Of the two as one."""
    again: float
    """Seconds for work that is done repeatedly."""


class Gains:
    def __init__(
        self, clusters: Clusters, limits: Limits, rates: Rates, abilities: Abilities
    ) -> None:
        self._clusters = clusters
        self._limits = limits
        self._rates = rates
        self._abilities = abilities
        self._again: dict[int, float] = {}
        self.summaries = Summaries(clusters)

    def of(self, first: int, second: int) -> Gain | Why:
        parts = [self.summaries.of(first), self.summaries.of(second)]
        why = self._clash(*parts)
        if why is not None:
            return why
        if self._is_stopped(first, second):
            return Why(Code.STOP)
        whole = self.summaries.together(first, second)
        again = self._repeated(first, second, whole)
        if isinstance(again, Why):
            return again
        if self._takes_too_many(whole, parts):
            return Why(Code.ARGUMENTS)
        gain = Gain(
            sum(part.moved for part in parts) - whole.moved,
            sum(not part.is_view for part in parts) - (not whole.is_view),
            *(whole, again),
        )
        before = self.again(first) + self.again(second)
        saved = self._rates.seconds(max(0, gain.moved), gain.kernels)
        return Why(Code.REPEAT) if math.isfinite(before) and again - before > saved else gain

    def exceeds(self, cluster: int) -> bool:
        """Whether several operators are more, or take more arguments, than was allowed."""
        summary = self.summaries.of(cluster)
        if summary.size == 1:
            return False
        is_limited = self._limits.max_args > 0
        too_many = is_limited and self._takes_too_many(summary, ())
        return summary.size > self._limits.max_depth or too_many

    def _takes_too_many(self, whole: Summary, parts: Sequence[Summary]) -> bool:
        """Whether a kernel takes more arguments than allowed; without a limit, than is common."""
        if self._limits.max_args:
            return whole.arguments_with_lengths > self._limits.max_args
        return whole.arguments > max(MOST_ARGUMENTS, *(part.arguments for part in parts))

    def saved_by_repeating(self, cluster: int, readers: Sequence[int]) -> int | Why:
        """The bytes that are not moved if all that read a cluster run it themselves."""
        saved = self.summaries.of(cluster).moved
        for reader in readers:
            summary = self.summaries.of(reader)
            members = self._clusters.together(cluster, reader)
            why = self._kernel_refusal(members, summary)
            if why is not None:
                return why
            operands = self._clusters.sketch.outside_operands(members, set(members))
            if self._takes_too_many(replace(summary, operands=operands), [summary]):
                return Why(Code.ARGUMENTS)
            saved += sum(summary.operands.values()) - sum(operands.values())
        return saved

    def again(self, cluster: int) -> float:
        """The seconds that a cluster takes for work it does repeatedly."""
        if cluster not in self._again:
            summary = self.summaries.of(cluster)
            members = self._clusters.members[cluster]
            kernel = self._kernel(members, summary)
            if summary.even is None:
                kernel.refusal()
            self._again[cluster] = self._seconds(members, frozenset(kernel.ties), summary)
        return self._again[cluster]

    def keep(self, cluster: int, gain: Gain) -> None:
        """What is known of a merged cluster."""
        self.summaries.keep(cluster, gain.summary)
        self._again[cluster] = gain.again

    def forget(self, clusters: Iterable[int]) -> None:
        changed = list(clusters)
        self.summaries.forget(changed)
        for cluster in changed:
            self._again.pop(cluster, None)

    def _clash(self, one: Summary, other: Summary) -> Why | None:
        """What a first look can decide."""
        opaque = one.opaque if one.opaque is not None else other.opaque
        if opaque is not None:
            return Why(Code.OPAQUE, opaque)
        anchors = (*one.anchors, *other.anchors)
        if len(anchors) > 1 and not are_siblings(anchors):
            return Why(Code.TWO_ANCHORS, anchors[-1].number)
        if one.size + other.size > self._limits.max_depth:
            return Why(Code.DEPTH)
        return None

    def _is_stopped(self, first: int, second: int) -> bool:
        """Whether one of two clusters reads what is handed over through memory, as was asked."""
        operators, inside = self._clusters.sketch.operators, self._clusters.inside
        for number in self._clusters.sketch.stops:
            readers = {each for result in operators[number].results for each in result.readers}
            for one, other in ((first, second), (second, first)):
                if number in inside[one] and not readers.isdisjoint(inside[other]):
                    return True
        return False

    def _repeated(self, first: int, second: int, whole: Summary) -> float | Why:
        """Operators that all work in place on as many elements always fit into one loop."""
        if whole.even is not None and (self._abilities.results or len(whole.results) < 2):
            return 0.0
        members = self._clusters.together(first, second)
        kernel = self._kernel(members, whole)
        why = kernel.refusal()
        return self._seconds(members, frozenset(kernel.ties), whole) if why is None else why

    def _seconds(self, members: Sequence[int], tied: frozenset[int], summary: Summary) -> float:
        if summary.even is not None or summary.is_view:
            return 0.0
        return repeated_seconds(self._clusters.sketch, members, tied, self._rates)

    def _kernel_refusal(self, members: Sequence[int], summary: Summary) -> Why | None:
        if len(members) > self._limits.max_depth:
            return Why(Code.DEPTH)
        return self._kernel(members, summary).refusal()

    def _kernel(self, members: Sequence[int], summary: Summary) -> CommonLoop:
        makers = {number for number, _result in summary.results}
        return CommonLoop(self._clusters.sketch, members, makers, self._abilities)
