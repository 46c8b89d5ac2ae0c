"""Clusters in short: what they read and write, and what they are made of.

The summary of two clusters as one is put together from theirs, so that it stays cheap as they grow.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import onnx_ir as ir

from relayout.fusion.arguments import for_operand, for_result
from relayout.fusion.clusters import Clusters
from relayout.fusion.common_loop import ANCHORS
from relayout.fusion.sketch import Count, SketchOperator, SketchResult
from relayout.graph.read import shape_of
from relayout.ops.kernels import Role


@dataclass(frozen=True, slots=True)
class Summary:
    operands: dict[ir.Value, int]
    """What is read from memory, with its size."""
    results: list[tuple[int, SketchResult]]
    """What is written there, with the operator that makes it."""
    size: int
    anchors: tuple[SketchOperator, ...]
    opaque: int | None
    """An operator that shares its kernel with nothing."""
    is_view: bool
    even: Count | None
    """The number of elements, if all members work in place on that many."""
    asked: frozenset[ir.Value] = frozenset()
    """What is made inside and named by something that runs ahead of all kernels."""

    @property
    def moved(self) -> int:
        if self.is_view:
            return 0
        return sum(self.operands.values()) + sum(result.size for _number, result in self.results)

    @property
    def arguments(self) -> int:
        return len(self.operands) + len(self._returned)

    @property
    def arguments_with_lengths(self) -> int:
        """The arguments of a kernel that is given unknown lengths beside its tensors."""
        given = sum(for_operand(shape_of(value)) for value in self.operands)
        return given + sum(for_result(shape_of(value)) for value in self._returned)

    @property
    def _returned(self) -> set[ir.Value]:
        """What its function returns, though the kernel need not write what is only asked for."""
        return {result.value for _number, result in self.results} | self.asked


class Summaries:
    def __init__(self, clusters: Clusters) -> None:
        self._clusters = clusters
        self._known: dict[int, Summary] = {}

    def of(self, cluster: int) -> Summary:
        if cluster not in self._known:
            self._known[cluster] = self._made(cluster)
        return self._known[cluster]

    def together(self, first: int, second: int) -> Summary:
        """Two clusters as one; an operator that both repeat is counted twice in the size."""
        one, other = self.of(first), self.of(second)
        inside = (self._clusters.inside[first], self._clusters.inside[second])
        maker = self._clusters.sketch.maker_of
        operands = {
            value: size
            for value, size in (one.operands | other.operands).items()
            if maker(value) not in inside[0] and maker(value) not in inside[1]
        }
        results = [
            (number, result)
            for number, result in (*one.results, *other.results)
            if self._clusters.is_result(number, result, (first, second))
        ]
        return Summary(
            operands,
            results,
            one.size + other.size,
            (*one.anchors, *other.anchors),
            one.opaque if other.opaque is None else other.opaque,
            one.is_view and other.is_view,
            one.even if one.even == other.even else None,
            one.asked | other.asked,
        )

    def keep(self, cluster: int, summary: Summary) -> None:
        self._known[cluster] = summary

    def forget(self, clusters: Iterable[int]) -> None:
        for cluster in clusters:
            self._known.pop(cluster, None)

    def _made(self, cluster: int) -> Summary:
        members = self._clusters.members[cluster]
        operators = [self._clusters.sketch.operators[number] for number in members]
        counts = {operator.count for operator in operators}
        is_even = len(counts) == 1 and all(each.role is Role.POINTWISE for each in operators)
        return Summary(
            self._clusters.sketch.outside_operands(members, self._clusters.inside[cluster]),
            list(self._clusters.results(members, (cluster,))),
            len(members),
            tuple(each for each in operators if each.role in ANCHORS),
            next((each.number for each in operators if each.role is Role.OPAQUE), None),
            all(each.is_view for each in operators),
            counts.pop() if is_even else None,
            frozenset(made.value for each in operators for made in each.results if made.asked),
        )
