"""Boxes round repeated blocks and round stretches in which no Transpose is.

A box holds nodes that follow each other in an order in which the graph can run, or parts of such
a run that nothing connects. So no path leaves a box and comes back, and boxes have no cycles.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

LONGEST_PERIOD = 600
LEAST_FOLDED = 4
"""Fewer nodes are not worth a box."""
MOST_BESIDE = 160
"""More items than this on one level are put into sections."""
SECTIONS = 30
SHOWN_COPIES = 3
"""Of more copies of a block only the first is beside a box with the others."""


@dataclass(frozen=True, slots=True)
class Box:
    """What can be folded, with its nodes and the boxes in it."""

    title: str
    items: tuple[Item, ...]
    kind: str
    """block, copies, stretch or section."""

    @property
    def nodes(self) -> Iterator[int]:
        for item in self.items:
            if isinstance(item, Box):
                yield from item.nodes
            else:
                yield item


Item = int | Box


@dataclass(frozen=True)
class Folding:
    """A sequence of nodes that is to be folded."""

    labels: Sequence[Hashable]
    """Nodes with the same label look the same."""
    shown: Sequence[bool]
    """Whether a node stays outside of stretches."""
    reads: Sequence[Sequence[int]]
    """By node, the nodes it reads from."""
    names: Sequence[str]
    """Operators, for titles."""

    @cached_property
    def numbers(self) -> npt.NDArray[np.int64]:
        """Labels as numbers."""
        known: dict[Hashable, int] = {}
        found = [known.setdefault(label, len(known)) for label in self.labels]
        return np.array(found, np.int64)

    @cached_property
    def crossing(self) -> npt.NDArray[np.int64]:
        """By place, how many edges go past the border before it."""
        changes = np.zeros(len(self.labels) + 1, np.int64)
        for target, sources in enumerate(self.reads):
            for source in sources:
                changes[min(source, target) + 1] += 1
                changes[max(source, target) + 1] -= 1
        return np.cumsum(changes)

    def top(self, first: int) -> tuple[Item, ...]:
        """All items; nodes before the first are the same in every run, and folded apart."""
        fixed = [
            Box(f"the same in every run: {self._title(part)}", self._sections(part), "stretch")
            for part in _connected(range(first), self.reads)
        ]
        return self._sections([*fixed, *self._items(first, len(self.labels))])

    def _title(self, part: Sequence[int]) -> str:
        return _summary([self.names[place] for place in part])

    def _items(self, begin: int, end: int) -> list[Item]:
        repeat = self._repeat(begin, end)
        if repeat is None:
            return list(self._stretches(begin, end))
        before, after = self._items(begin, repeat.begin), self._items(repeat.end, end)
        return [*before, self._copies(repeat), *after]

    def _copies(self, repeat: Repeat) -> Box:
        blocks = [
            Box(
                f"block {number + 1} of {repeat.copies}", self._block(begin, repeat.period), "block"
            )
            for number, begin in enumerate(range(repeat.begin, repeat.end, repeat.period))
        ]
        title = f"{repeat.copies} x {_summary(self.names[repeat.begin :][: repeat.period])}"
        if len(blocks) <= SHOWN_COPIES:
            return Box(title, tuple(blocks), "copies")
        rest = Box(f"{len(blocks) - 1} more like block 1", self._sections(blocks[1:]), "copies")
        return Box(title, (blocks[0], rest), "copies")

    def _block(self, begin: int, period: int) -> tuple[Item, ...]:
        return self._sections(self._items(begin, begin + period))

    def _repeat(self, begin: int, end: int) -> Repeat | None:
        """The run of equal blocks that hides most nodes, cut where fewest values cross."""
        part = self.numbers[begin:end]
        best, gain = None, 0
        for period in range(LEAST_FOLDED, min(len(part) // 2, LONGEST_PERIOD) + 1):
            for start, length in _runs(part[:-period] == part[period:]):
                copies = 1 + length // period
                hidden = (copies - 1) * period
                if copies >= 2 and hidden > gain and (copies > 2 or period >= 2 * LEAST_FOLDED):
                    spare = length + period - copies * period
                    best, gain = (start, copies, period, spare), hidden
        if best is None:
            return None
        start, copies, period, spare = best
        offset = self._best_cut(begin + start, spare)
        return Repeat(begin + start + offset, copies, period)

    def _best_cut(self, begin: int, spare: int) -> int:
        """How far to move a block so that fewest edges cross its border."""
        return int(np.argmin(self.crossing[begin : begin + spare + 1]))

    def _stretches(self, begin: int, end: int) -> Iterator[Item]:
        run: list[int] = []
        for place in (*range(begin, end), None):
            if place is not None and not self.shown[place]:
                run.append(place)
                continue
            yield from self._parts(run)
            run = []
            if place is not None:
                yield place

    def _parts(self, run: Sequence[int]) -> Iterator[Item]:
        """The connected parts of a run, folded where they are large enough."""
        for part in _connected(run, self.reads):
            if len(part) < LEAST_FOLDED:
                yield from part
            else:
                yield Box(self._title(part), self._sections(part), "stretch")

    def _sections(self, items: Sequence[Item]) -> tuple[Item, ...]:
        """Items, or boxes of as many as are beside each other where there are too many."""
        if len(items) <= MOST_BESIDE:
            return tuple(items)
        size = max(-(-len(items) // SECTIONS), LEAST_FOLDED)
        parts = [items[begin : begin + size] for begin in range(0, len(items), size)]
        return tuple(self._section(part) for part in parts)

    def _section(self, part: Sequence[Item]) -> Item:
        if len(part) == 1:
            return part[0]
        box = Box("", self._sections(part), "section")
        return Box(_summary([self.names[place] for place in box.nodes]), box.items, "section")


@dataclass(frozen=True, slots=True)
class Repeat:
    """Copies of a block, one after the other."""

    begin: int
    copies: int
    period: int

    @property
    def end(self) -> int:
        return self.begin + self.copies * self.period


def _runs(same: npt.NDArray[np.bool_]) -> Iterator[tuple[int, int]]:
    """Begin and length of each run of trues."""
    borders = np.flatnonzero(np.diff(np.concatenate(([False], same, [False])).astype(np.int8)))
    for begin, end in borders.reshape(-1, 2):
        yield int(begin), int(end - begin)


def _connected(run: Sequence[int], reads: Sequence[Sequence[int]]) -> list[list[int]]:
    """The parts of a run between which no edge is."""
    parents = {place: place for place in run}

    def root(place: int) -> int:
        while parents[place] != place:
            parents[place] = parents[parents[place]]
            place = parents[place]
        return place

    for target in run:
        for source in reads[target]:
            if source in parents:
                parents[root(target)] = root(source)
    parts: dict[int, list[int]] = {}
    for place in run:
        parts.setdefault(root(place), []).append(place)
    return list(parts.values())


def _summary(names: Sequence[str]) -> str:
    """The most frequent operators, and how many nodes there are."""
    common = sorted(Counter(names).items(), key=lambda item: (-item[1], item[0]))
    shown = ", ".join(f"{count} {name}" if count > 1 else name for name, count in common[:3])
    return f"{shown}, …" if len(common) > 3 else shown
