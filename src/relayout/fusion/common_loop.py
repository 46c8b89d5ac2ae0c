"""What one kernel can do: whether a set of operators can run as one.

A kernel loops over the elements of a *space*: the result of its anchor, the tensor that its
reductions run over, or its results. Operators are walked in order. One whose element belongs to the
element of the loop is *tied* to it: the anchor, a result, and whatever reads these. All others are
computed where they are read. What is tied stays with its element: it may be combined with others of
the same place, given another shape, or put in another place on the way out, but not gathered.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace

from relayout.fusion.codes import Code, Why
from relayout.fusion.groups import Abilities
from relayout.fusion.siblings import are_siblings, joins_siblings
from relayout.fusion.sketch import Count, Sketch, SketchOperator, count_of
from relayout.graph.read import Shape
from relayout.ops.iteration import is_zero_padding
from relayout.ops.kernels import Role
from relayout.ops.registry import facts_of

ROW_BYTES = 64 * 1024
"""The longest row that a kernel keeps at hand while it works on it."""

ANCHORS = frozenset({Role.PRODUCT, Role.WINDOW, Role.COMPLEX})
ROWS = frozenset({Role.REDUCTION, Role.ROWWISE})


@dataclass(frozen=True, slots=True)
class Space:
    """The elements that a kernel loops over."""

    shape: Shape | None
    count: Count | None
    axes: tuple[int, ...] = ()
    """Along which rows lie, if the kernel works by rows."""

    @property
    def row_shape(self) -> Shape | None:
        """The shape with one element for each row."""
        if self.shape is None:
            return None
        return tuple(1 if axis in self.axes else n for axis, n in enumerate(self.shape))

    @property
    def row_length(self) -> int | None:
        lengths = [(self.shape or ())[axis] for axis in self.axes]
        known = [length for length in lengths if isinstance(length, int)]
        return math.prod(known) if len(known) == len(lengths) else None


@dataclass(frozen=True, slots=True)
class Tied:
    """The element of an operator belongs to the element of the loop, or to the row."""

    space: int
    is_row: bool = False
    moves: tuple[Hashable, ...] = ()
    after_rows: bool = False
    """Whether it depends on a whole row."""


class CommonLoop:
    """Operators as one loop, so as one kernel; `refusal` is the reason why that cannot be done."""

    def __init__(
        self,
        sketch: Sketch,
        members: Sequence[int],
        results: set[int],
        abilities: Abilities | None = None,
    ) -> None:
        self._can = abilities or Abilities()
        self._operators = [sketch.operators[number] for number in members]
        self._inside = {operator.number: operator for operator in self._operators}
        self._results = results
        self._spaces: dict[int, Space] = {}
        self.ties: dict[int, Tied] = {}
        self._keeps_rows = False
        self._anchors = [each for each in self._operators if each.role in ANCHORS]
        self._by_rows = [each for each in self._operators if each.role in ROWS]
        self._home = -1
        """The space to which results are tied that read nothing tied."""

    def refusal(self) -> Why | None:
        if len(self._operators) == 1:
            return None
        opaque = next((each for each in self._operators if each.role is Role.OPAQUE), None)
        if opaque is not None:
            return Why(Code.OPAQUE, opaque.number)
        if len(self._anchors) > 1 and not are_siblings(self._anchors):
            return Why(Code.TWO_ANCHORS, self._anchors[-1].number)
        lacking = self._lacking()
        if lacking is not None:
            return Why(Code.CAPABILITY, lacking.number)
        if not self._anchors and not self._by_rows and len(self._results) < 2:
            return None
        self._choose_space()
        return self._walk()

    def _lacking(self) -> SketchOperator | None:
        """An operator for which the target's kernels lack an ability."""
        if len(self._results) > 1 and not self._can.results:
            return self._inside[max(self._results)]
        if len(self._anchors) > 1 and not self._can.siblings:
            return self._anchors[-1]
        return self._by_rows[-1] if self._by_rows and not self._can.rows else None

    def _choose_space(self) -> None:
        if len(self._anchors) > 1:
            return
        if self._anchors:
            self._home = self._anchors[0].number
            lead = self._anchors[0]
            self._spaces[self._home] = Space(lead.shape, lead.count)
        elif self._by_rows:
            lead = self._by_rows[0]
            shape = lead.operand_shape(0)
            self._spaces[self._home] = Space(shape, count_of(shape), lead.iteration.axes)
        else:
            lead = self._inside[min(self._results)]
            self._spaces[self._home] = Space(lead.shape, lead.count)

    def _walk(self) -> Why | None:
        for operator in self._operators:
            found = self._tie(operator)
            if isinstance(found, Why):
                return found
            if found is not None:
                self.ties[operator.number] = found
        return self._row_refusal()

    def _row_refusal(self) -> Why | None:
        if not self._keeps_rows:
            return None
        row = max(self._by_rows, key=lambda each: each.number)
        length = max((space.row_length or ROW_BYTES + 1) for space in self._spaces.values())
        dtype = row.view.dtype(0)
        item = 8 if dtype is None else dtype.itemsize
        return Why(Code.ROW, row.number) if length * item > ROW_BYTES else None

    def _tie(self, operator: SketchOperator) -> Tied | Why | None:
        if operator.role in ANCHORS:
            return self._tie_anchor(operator)
        if operator.role in ROWS:
            return self._tie_rows(operator)
        tied = list(self._tied_operands(operator))
        if not tied:
            return self._tie_free(operator)
        if operator.role is Role.POINTWISE:
            return self._tie_pointwise(operator, tied)
        if operator.role is Role.GATHER:
            return self._tie_gather(operator, tied)
        if not self._can.moves:
            return Why(Code.CAPABILITY, operator.number)
        state = tied[0][1]
        if operator.role is Role.VIEW:
            return state
        step = (operator.operand_shape(0), operator.iteration.move)
        return replace(state, moves=(*state.moves, step))

    def _tied_operands(self, operator: SketchOperator) -> Iterator[tuple[int, Tied]]:
        for place, producer in enumerate(operator.producers):
            if producer in self.ties and producer in self._inside:
                yield place, self.ties[producer]

    def _tie_free(self, operator: SketchOperator) -> Tied | Why | None:
        """One that reads nothing tied: results are tied, all others computed where they are read.

        What several others read in place is worth keeping, so it is tied where rows are kept.
        """
        space = self._spaces.get(self._home)
        is_result = operator.number in self._results
        if not is_result:
            is_kept = self._by_rows and space is not None and self._is_shared(operator, space)
            return Tied(self._home) if is_kept else self._free_refusal(operator)
        if space is None or not _is_same(operator.count, space.count):
            return Why(Code.RESULTS, operator.number)
        if self._by_rows and not _is_same(operator.shape, space.shape):
            return Why(Code.RESULTS, operator.number)
        return Tied(self._home)

    def _is_shared(self, operator: SketchOperator, space: Space) -> bool:
        """Whether several members read an operator in place."""
        if operator.role is not Role.POINTWISE or not _is_same(operator.shape, space.shape):
            return False
        readers = list(self._readers(operator))
        in_place = ROWS | {Role.POINTWISE}
        return len(readers) > 1 and all(reader.role in in_place for reader in readers)

    def _free_refusal(self, operator: SketchOperator) -> Why | None:
        """Beside other results, what is moved must not also be computed for its own place."""
        if len(self._results) == 1 or operator.role not in {Role.GATHER, Role.MOVE}:
            return None
        for producer in operator.producers:
            source = self._inside.get(producer)
            if source is not None and len(list(self._readers(source))) > 1:
                return Why(Code.RESULTS, operator.number)
        return None

    def _readers(self, operator: SketchOperator) -> Iterator[SketchOperator]:
        for result in operator.results:
            for reader in result.readers:
                if reader in self._inside:
                    yield self._inside[reader]

    def _tie_pointwise(
        self, operator: SketchOperator, tied: Sequence[tuple[int, Tied]]
    ) -> Tied | Why:
        first = tied[0][1]
        if any(each.space != first.space or each.moves != first.moves for _, each in tied):
            return Why(Code.PATH, operator.number)
        space = self._spaces[first.space]
        after = any(each.after_rows for _, each in tied)
        rows = [place for place, each in tied if each.is_row]
        if rows and len(rows) == len(tied) and operator.count == self._row_count(space):
            return replace(first, after_rows=True)
        if rows:
            return self._tie_across(operator, rows, first, space)
        if not _is_same(operator.count, space.count):
            return Why(Code.BETWEEN, operator.number)
        return replace(first, after_rows=after)

    def _tie_across(
        self, operator: SketchOperator, rows: Sequence[int], state: Tied, space: Space
    ) -> Tied | Why:
        """One element for each row, spread over the elements of that row."""
        if state.moves or not _is_same(operator.shape, space.shape):
            return Why(Code.BETWEEN, operator.number)
        if any(operator.operand_shape(place) != space.row_shape for place in rows):
            return Why(Code.BETWEEN, operator.number)
        self._keeps_rows = True
        return Tied(state.space, after_rows=True)

    def _row_count(self, space: Space) -> Count | None:
        return count_of(space.row_shape)

    def _tie_gather(self, operator: SketchOperator, tied: Sequence[tuple[int, Tied]]) -> Tied | Why:
        """What is tied cannot be gathered, but results of siblings may be written side by side."""
        is_all = len(tied) == len(operator.producers)
        plain = all(not each.moves and not each.is_row for _, each in tied)
        if not is_all or not plain or not joins_siblings(operator, self._anchors):
            return Why(Code.PATH, operator.number)
        self._spaces[operator.number] = Space(operator.shape, operator.count)
        return Tied(operator.number)

    def _tie_rows(self, operator: SketchOperator) -> Tied | Why:
        """Rows are those of all other reductions; after a product they are rows of its result."""
        tied = dict(self._tied_operands(operator))
        if any(place != 0 for place in tied):
            return Why(Code.PATH, operator.number)
        state = tied.get(0)
        if state is None and self._anchors:
            return Why(Code.TWO_ANCHORS, operator.number)
        home = self._home if state is None else state.space
        space = self._spaces[home]
        if state is not None and (state.moves or state.is_row):
            return Why(Code.ROW, operator.number)
        if self._anchors:
            if not self._takes_rows(operator, space):
                return Why(Code.TWO_ANCHORS, operator.number)
            self._spaces[home] = space = replace(space, axes=operator.iteration.axes)
            self._keeps_rows = True
        if not _is_same(operator.operand_shape(0), space.shape):
            return Why(Code.ROW, operator.number)
        if operator.iteration.axes != space.axes:
            return Why(Code.ROW, operator.number)
        if state is not None and state.after_rows:
            self._keeps_rows = True
        return Tied(home, is_row=operator.role is Role.REDUCTION, after_rows=True)

    def _takes_rows(self, operator: SketchOperator, space: Space) -> bool:
        """Whether the anchor's kernel has whole rows of its result at hand."""
        kernel = facts_of(self._anchors[0].node).kernel
        if space.shape is None or kernel is None or not kernel.has_rows:
            return False
        last = (len(space.shape) - 1,)
        return len(self._anchors) == 1 and operator.iteration.axes == last

    def _tie_anchor(self, operator: SketchOperator) -> Tied | Why:
        for place, producer in enumerate(operator.producers):
            source = self._inside.get(producer)
            if source is None:
                continue
            blocked = self._streaming_refusal(operator, place, source)
            if blocked is not None:
                return blocked
        self._spaces[operator.number] = Space(operator.shape, operator.count)
        return Tied(operator.number)

    def _streaming_refusal(
        self, anchor: SketchOperator, place: int, source: SketchOperator
    ) -> Why | None:
        """An anchor reads an element many times, so only what costs nothing is done on the way."""
        if not self._can.prologues:
            return Why(Code.CAPABILITY, source.number)
        if not anchor.iteration.streamed:
            return Why(Code.COMPLEX_PROLOGUE, anchor.number)
        waiting, seen = [source], {source.number}
        while waiting:
            current = waiting.pop()
            if current.number in self.ties:
                code = Code.TWO_ANCHORS if self._anchors[0].number in self.ties else Code.RESULTS
                return Why(code, current.number)
            if not _streams(current, anchor, place):
                return Why(Code.COMPLEX_PROLOGUE, current.number)
            for producer in current.producers:
                if producer in self._inside and producer not in seen:
                    seen.add(producer)
                    waiting.append(self._inside[producer])
        return None


def _streams(operator: SketchOperator, anchor: SketchOperator, place: int) -> bool:
    if operator.role is Role.POINTWISE:
        return operator.work == 1
    if operator.role in {Role.VIEW, Role.MOVE}:
        return True
    kernel = facts_of(anchor.node).kernel
    pads = kernel is not None and kernel.pads
    return place == 0 and pads and is_zero_padding(operator.view)


def _is_same(first: Shape | Count | None, second: Shape | Count | None) -> bool:
    """Whether two shapes or counts are known to be one; an unknown length equals nothing."""
    return first is not None and first == second and None not in first
