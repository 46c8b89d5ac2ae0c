"""Clusters of operators that grow together, kept in an order in which they can run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from relayout.fusion.sketch import Sketch, SketchResult

LONGEST_SEARCH = 512
"""How many clusters are looked at to show that a merge closes no cycle; further ones refuse it."""


class Clusters:
    """A partition of the operators in the making; an operator may be repeated in several."""

    def __init__(self, sketch: Sketch, groups: Iterable[Sequence[int]]) -> None:
        self.sketch = sketch
        self.members: dict[int, tuple[int, ...]] = {}
        self.inside: dict[int, set[int]] = {}
        self.homes: list[list[int]] = [[] for _ in sketch.operators]
        """The clusters in which each operator runs."""
        self.after: dict[int, dict[int, int]] = {}
        """Who reads each cluster, with the size of the largest value read."""
        self.before: dict[int, dict[int, int]] = {}
        self._ranks: dict[int, int] = {}
        self._leaving: set[int] = set()
        """Clusters with results that are read outside the graph."""
        self._made = 0
        for group in groups:
            self._ranks[self._found(group)] = len(self._ranks)
        self._link()

    def in_order(self) -> list[int]:
        return sorted(self.members, key=self._ranks.__getitem__)

    def rank(self, cluster: int) -> int:
        return self._ranks[cluster]

    def estimate(self, first: int, second: int) -> int:
        """About how many bytes two clusters save as one, estimated from their links alone."""
        shared = sum(
            min(size, self.before[second][source])
            for source, size in self.before[first].items()
            if source in self.before[second]
        )
        read = self.after[first].get(second, 0)
        is_written = len(self.after[first]) > 1 or first in self._leaving
        return shared + (read if is_written else 2 * read)

    def together(self, first: int, second: int) -> list[int]:
        return sorted(self.inside[first] | self.inside[second])

    def results(
        self, members: Iterable[int], clusters: Sequence[int]
    ) -> Iterator[tuple[int, SketchResult]]:
        """What is read outside of some clusters that would run as one, with what makes it."""
        for number in members:
            for result in self.sketch.operators[number].results:
                if self.is_result(number, result, clusters):
                    yield number, result

    def is_result(self, number: int, result: SketchResult, clusters: Sequence[int]) -> bool:
        """Whether what an operator of some clusters makes is read outside of them."""
        return result.leaves or any(
            home not in clusters and number not in self.inside[home]
            for reader in result.readers
            for home in self.homes[reader]
        )

    def merge(self, first: int, second: int) -> int | None:
        """The cluster of both, or None if the clusters could then not run one after another."""
        if self._ranks[first] > self._ranks[second]:
            first, second = second, first
        later = self._reached(first, second, self.after)
        earlier = self._reached(second, first, self.before)
        if later is None or earlier is None:
            return None
        merged = self._found(self.together(first, second))
        self._reorder(first, second, merged, later, earlier)
        self._replace(first, second, merged)
        return merged

    def repeat(self, cluster: int, readers: Sequence[int]) -> None:
        """Runs a cluster inside each of those that read it, and nowhere else."""
        repeated = self.members[cluster]
        for number in repeated:
            self.homes[number].remove(cluster)
        for reader in readers:
            for number in repeated:
                if number not in self.inside[reader]:
                    self.homes[number].append(reader)
            self.inside[reader].update(repeated)
            self.members[reader] = tuple(sorted(self.inside[reader]))
            self.before[reader].pop(cluster, None)
        for source, size in self.before[cluster].items():
            self.after[source].pop(cluster, None)
            for reader in readers:
                self._join(source, reader, size)
        self._forget(cluster)

    def _found(self, members: Sequence[int]) -> int:
        number = self._made
        self._made += 1
        self.members[number] = tuple(members)
        self.inside[number] = set(members)
        for member in members:
            self.homes[member].append(number)
            if any(result.leaves for result in self.sketch.operators[member].results):
                self._leaving.add(number)
        return number

    def _link(self) -> None:
        self.after = {cluster: {} for cluster in self.members}
        self.before = {cluster: {} for cluster in self.members}
        for operator in self.sketch.operators:
            for home in self.homes[operator.number]:
                for result in operator.results:
                    self._link_readers(home, operator.number, result.readers, result.size)
                self._link_readers(home, operator.number, operator.followers, 0)

    def _link_readers(self, home: int, number: int, readers: Iterable[int], size: int) -> None:
        for reader in readers:
            for other in self.homes[reader]:
                if number not in self.inside[other]:
                    self._join(home, other, size)

    def _join(self, source: int, reader: int, size: int) -> None:
        largest = max(size, self.after[source].get(reader, 0))
        self.after[source][reader] = self.before[reader][source] = largest

    def _reached(self, start: int, end: int, steps: dict[int, dict[int, int]]) -> list[int] | None:
        """The clusters between two that one leads to, but for the other.

        None if one of them leads to the other, or if too many have to be looked at.
        """
        low, high = sorted((self._ranks[start], self._ranks[end]))
        seen: set[int] = set()
        waiting = [start]
        while waiting:
            current = waiting.pop()
            for step in steps[current]:
                if step == end:
                    if current != start:
                        return None
                elif low < self._ranks[step] < high and step not in seen:
                    seen.add(step)
                    waiting.append(step)
            if len(seen) > LONGEST_SEARCH:
                return None
        return sorted(seen, key=self._ranks.__getitem__)

    def _reorder(
        self, first: int, second: int, merged: int, later: list[int], earlier: list[int]
    ) -> None:
        """What leads to the second comes before the merged cluster, what the first leads to after.

        Only clusters between the two change their ranks, among themselves.
        """
        ranks = sorted(self._ranks[each] for each in (first, second, *later, *earlier))
        self._ranks.update(zip((*earlier, merged), ranks, strict=False))
        if later:
            self._ranks.update(zip(later, ranks[-len(later) :], strict=True))

    def _replace(self, first: int, second: int, merged: int) -> None:
        for steps, back in ((self.after, self.before), (self.before, self.after)):
            steps[merged] = {}
            for old in (first, second):
                for each, size in steps[old].items():
                    if each not in {first, second}:
                        steps[merged][each] = max(size, steps[merged].get(each, 0))
            for each, size in steps[merged].items():
                back[each].pop(first, None)
                back[each].pop(second, None)
                back[each][merged] = size
        for member in self.members[merged]:
            self.homes[member] = [
                home for home in self.homes[member] if home not in {first, second}
            ]
        for old in (first, second):
            self._forget(old)

    def _forget(self, cluster: int) -> None:
        for mapping in (self.members, self.inside, self.after, self.before, self._ranks):
            mapping.pop(cluster, None)
