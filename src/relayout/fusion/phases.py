"""The three phases in which vertices are merged into their post-dominators.

| phase | what is merged | kind of the ways | on the ways | post-dominator |
|---|---|---|---|---|
| 0 | complex | elementwise | up to broadcast | up to broadcast |
| 0, 1 | up to broadcast | up to injective, or reduction | up to injective | no tuple, not opaque |
| 1 | injective, tuple | any | up to injective | up to injective |
| 2 | up to injective | any | up to injective | a tuple inside an injective group |
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from relayout.fusion.arguments import ArgumentLimit, own_arguments
from relayout.fusion.codes import Code, Why
from relayout.fusion.forward_graph import Vertex
from relayout.fusion.groups import Limits
from relayout.fusion.post_dominators import Dominator
from relayout.fusion.unions import Union
from relayout.ops.kind import Kind

_Fits = Callable[[Kind, bool], bool]
"""Whether a union of a kind may lie on the way; the flag marks the end of the way."""


def _flat(kind: Kind, _is_end: bool) -> bool:
    return kind <= Kind.INJECTIVE


def _pointwise(kind: Kind, _is_end: bool) -> bool:
    return kind <= Kind.BROADCAST


def _flat_into_complex(kind: Kind, is_end: bool) -> bool:
    return kind <= Kind.INJECTIVE or (is_end and kind in {Kind.REDUCTION, Kind.COMPLEX})


class Phases:
    """The state of the three phases; `run` returns the union of every vertex, by index."""

    def __init__(
        self, order: Sequence[Vertex], dominators: Sequence[Dominator], limits: Limits
    ) -> None:
        self._order = order
        self._dominators = dominators
        self._limits = limits
        self._unions = [_alone(vertex) for vertex in order]
        self._arguments = ArgumentLimit(order, self._unions, limits.max_args)
        self._shortest = self._least_sizes()
        self.refusals: dict[int, Why] = {}
        """Why a vertex was not merged, by index, as it stood when it was last asked."""

    def run(self) -> list[Union]:
        for phase in (0, 1, 2) if self._limits.level else ():
            for vertex in self._order:
                self._resume(vertex)
                self._try(phase, vertex)
        return self._unions

    def _resume(self, vertex: Vertex) -> None:
        for source in self._arguments.resume(vertex):
            end = self._end(source)
            if end is None or not self._arguments.fits(vertex):
                continue
            if self._unions[end.index].anchor is None and not self._clashes(source, end):
                self._commit(source, end)

    def _try(self, phase: int, vertex: Vertex) -> None:
        end = self._end(vertex)
        if end is not None and self._unions[vertex.index].find() is self._unions[end.index].find():
            return
        why = self._refusal(phase, vertex, end)
        if why is not None:
            self.refusals[vertex.index] = why
        elif end is not None:
            self._commit(vertex, end)

    def _clashes(self, source: Vertex, end: Vertex) -> bool:
        """Whether a fusion that was put off would by now join complex operators."""
        whole = self._unions[end.index].find()
        parts = {self._unions[vertex.index].find() for vertex in self._region(source, end)}
        anchored = [part for part in parts if part is not whole and part.anchor is not None]
        if not anchored:
            return False
        is_taken = whole.anchor is not None or len(anchored) > 1
        return is_taken or min(anchored[0].kind, whole.kind) > Kind.BROADCAST

    def _end(self, vertex: Vertex) -> Vertex | None:
        parent = self._dominators[vertex.index].parent
        return None if parent is None else self._order[parent]

    def _refusal(self, phase: int, vertex: Vertex, end: Vertex | None) -> Why | None:
        """Why a vertex is not merged into its post-dominator in this phase."""
        own = self._unions[vertex.index]
        if own.kind is Kind.OPAQUE:
            return Why(Code.OPAQUE)
        if end is None:
            return Why(Code.EXTERN if vertex.is_external else Code.NO_POST_DOMINATOR)
        if self._is_too_deep(vertex, end):
            return Why(Code.DEPTH, end.index)
        if self._arguments.is_exceeded(vertex):
            return Why(Code.ARGUMENTS, end.index)
        is_tuple = self._unions[end.index].kind is Kind.TUPLE
        if phase == 2:
            return self._into_tuple(vertex, end) if is_tuple else self._as_before(vertex, end)
        if is_tuple:
            return Why(Code.TUPLE_SINK, end.index)
        return self._into(phase, vertex, end)

    def _into(self, phase: int, vertex: Vertex, end: Vertex) -> Why | None:
        kind = self._unions[vertex.index].kind
        between = self._dominators[vertex.index].between
        if kind is Kind.REDUCTION:
            return Why(Code.REDUCTION_SOURCE, end.index)
        if kind is Kind.COMPLEX:
            if phase != 0:
                return self._as_before(vertex, end)
            if between != Kind.ELEMENTWISE:
                return Why(Code.BETWEEN, end.index)
            return self._blocked(vertex, end, _pointwise)
        if kind <= Kind.BROADCAST:
            if between <= Kind.INJECTIVE or between is Kind.REDUCTION:
                return self._blocked(vertex, end, _flat_into_complex)
            return Why(Code.BETWEEN, end.index)
        if phase == 0:
            return Why(Code.PATH, end.index)
        return self._blocked(vertex, end, _flat)

    def _into_tuple(self, vertex: Vertex, end: Vertex) -> Why | None:
        own = self._unions[vertex.index]
        if own.kind > Kind.INJECTIVE or self._unions[end.index].find().kind > Kind.INJECTIVE:
            return Why(Code.TUPLE_SINK, end.index)
        return self._blocked(vertex, end, _flat)

    def _as_before(self, vertex: Vertex, end: Vertex) -> Why:
        """A later phase has no rule of its own for this vertex."""
        return self.refusals.get(vertex.index) or Why(Code.PATH, end.index)

    def _region(self, source: Vertex, end: Vertex) -> Iterator[Vertex]:
        """The vertices on all ways from the source to the end, without the end, each once."""
        seen: set[int] = set()
        waiting = [source]
        while waiting:
            vertex = waiting.pop()
            if vertex is end or vertex.index in seen:
                continue
            seen.add(vertex.index)
            yield vertex
            waiting.extend(reader for reader, _kind in vertex.uses)

    def _least_sizes(self) -> list[int]:
        """For each vertex a number of vertices that lie on its ways at least.

        Without it graphs in which ways meet late, if at all, would be walked again and again.
        """
        least = [1] * len(self._order)
        up = [0] * len(self._order)
        for vertex in reversed(self._order):
            parent = self._dominators[vertex.index].parent
            above = 0 if parent is None else up[parent]
            for reader, _kind in vertex.uses:
                if reader.index != parent:
                    least[vertex.index] = max(least[vertex.index], 1 + up[reader.index] - above)
            up[vertex.index] = least[vertex.index] + above
        return least

    def _is_too_deep(self, source: Vertex, end: Vertex) -> bool:
        """Whether the group would be too large, or might be.

        A vertex on the way counts with what was merged into it while it was a root, and again as
        a part of what it was merged into: never too little.
        """
        size = self._unions[end.index].find().size
        if size + self._shortest[source.index] > self._limits.max_depth:
            return True
        for vertex in self._region(source, end):
            size += self._unions[vertex.index].size
            if size > self._limits.max_depth:
                return True
        return False

    def _blocked(self, source: Vertex, end: Vertex, fits: _Fits) -> Why | None:
        """The first vertex on the ways whose union does not fit; the source is not asked."""
        seen: set[int] = set()
        waiting = [reader for reader, _kind in source.uses]
        while waiting:
            vertex = waiting.pop()
            if vertex.index in seen:
                continue
            seen.add(vertex.index)
            if not fits(self._unions[vertex.index].find().kind, vertex is end):
                return Why(Code.PATH, vertex.index)
            if vertex is not end:
                waiting.extend(reader for reader, _kind in vertex.uses)
        return None

    def _commit(self, source: Vertex, end: Vertex) -> None:
        if self._arguments.is_waiting:
            self._arguments.postpone(source)
            self.refusals[source.index] = Why(Code.ARGUMENTS, end.index)
            return
        self.refusals.pop(source.index, None)
        for vertex in self._region(source, end):
            self._unions[vertex.index].merge_into(self._unions[end.index])


def _alone(vertex: Vertex) -> Union:
    anchor = vertex if vertex.kind is Kind.COMPLEX else None
    return Union(vertex, vertex.kind, anchor, own_arguments(vertex.expression))
