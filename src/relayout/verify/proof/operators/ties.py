"""What loops carry from round to round, whatever the order of axes in which they carry it."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

from relayout.verify.proof.lengths import UNSTABLE, symbol
from relayout.verify.proof.pieces import FREE, Dim, Piece, refined
from relayout.verify.proof.table import Key, NotKnownError, TermTable, TermValue
from relayout.verify.proof.views import exact


@dataclass(frozen=True)
class CarriedValues:
    """The values that a loop starts with, and what is known of how its body changes them.

    A value that the body leaves as it is `stays`: it is what it is outside. Lengths of the `grown`
    axes, as (value, axis), change from round to round; of those `reformed` even the rank does.
    """

    table: TermTable
    kind: str
    depth: int
    starts: Sequence[TermValue]
    stays: frozenset[int] = frozenset()
    grown: frozenset[tuple[int, int]] = frozenset()
    reformed: frozenset[int] = frozenset()
    ends: tuple[TermValue, ...] = ()

    def reads(self) -> list[TermValue]:
        """What the body reads: tensors of its own, with indices named after those of the starts."""
        return [self._read(i, start) for i, start in enumerate(self.starts)]

    def _read(self, number: int, start: TermValue) -> TermValue:
        if number in self.stays:
            return start
        key = ("carried", self.kind, self.depth, self._place(number))
        term = self.table.term(*key)
        if start.dims is None or number in self.reformed:
            return TermValue(term, None)
        value = named_after(self.table, term, key, start)
        return self._lengthened(value, number, key)

    def _place(self, number: int) -> int:
        """Which of those that do not stay it is."""
        return sum(i not in self.stays for i in range(number))

    def _lengthened(self, value: TermValue, number: int, key: Key) -> TermValue:
        dims = list(value.known_dims)
        for one, axis in self.grown:
            if one == number:
                length = symbol(f"{UNSTABLE}{key}[{axis}]")
                dims[axis] = self.table.axis(length, *key, "grown", axis)
        return value.with_dims(dims)

    def learned(self, ends: Sequence[TermValue]) -> CarriedValues | None:
        """More, from what a body made of what it read; None if there is nothing more."""
        stays, grown, reformed = set(self.stays), set(self.grown), set(self.reformed)
        for i, (read, end) in enumerate(zip(self.reads(), ends, strict=True)):
            if i in self.stays:
                continue
            if read.dims is not None and (read.term, read.dims) == (end.term, end.dims):
                stays.add(i)
            elif read.dims is None or end.dims is None or read.rank != end.rank:
                reformed.add(i)
            else:
                pairs = enumerate(zip(read.shape, end.shape, strict=True))
                grown |= {(i, axis) for axis, (one, other) in pairs if one != other}
        if stays > self.stays:
            return replace(self, stays=frozenset(stays))
        if grown > self.grown or reformed > self.reformed:
            return replace(self, grown=frozenset(grown), reformed=frozenset(reformed))
        return None

    def ending(self, ends: Sequence[TermValue]) -> CarriedValues:
        return replace(self, ends=tuple(ends))

    def key(self) -> Hashable:
        """How the values begin, and how what the body writes goes over into what it reads."""
        moving = [i for i in range(len(self.starts)) if i not in self.stays]
        reads = self.reads()
        begun = tuple(self._begin(i, reads[i]) for i in moving)
        return begun, tuple(self._tie(i, reads[i], self.ends[i]) for i in moving)

    def _begin(self, number: int, read: TermValue) -> Hashable:
        start = self.starts[number]
        if read.dims is None:
            return exact(self.table, start)
        grown = tuple((a, start.known_dims[a]) for i, a in sorted(self.grown) if i == number)
        return start.term, frozenset(read.pieces), grown

    def _tie(self, number: int, read: TermValue, end: TermValue) -> Hashable:
        if read.dims is None or end.dims is None:
            return exact(self.table, end)
        pairs: set[Hashable] = set()
        for axis, (one, other) in enumerate(zip(read.known_dims, end.known_dims, strict=True)):
            if (number, axis) in self.grown:
                pairs.add((one, other))
                continue
            rows = refined([one, other]) if one else []
            if rows is None:
                raise NotKnownError("a loop that carries axes cut at other places")
            pairs |= set(rows)
        return end.term, frozenset(pairs)

    def left(self, key: Key) -> list[TermValue]:
        """What the loop leaves; indices are named after those it started with."""
        return [
            start if i in self.stays else self._left(key, i, start)
            for i, start in enumerate(self.starts)
        ]

    def _left(self, key: Key, number: int, start: TermValue) -> TermValue:
        term = self.table.term(*key, "left", self._place(number))
        if start.dims is None or number in self.reformed:
            return TermValue(term, None)
        value = named_after(self.table, term, ("left", term), start)
        return self._lengthened(value, number, ("left", term))


def named_after(table: TermTable, term: int, key: Key, start: TermValue) -> TermValue:
    """A tensor with an index for each of another's; of free ones only the place is known."""

    def named(axis: int, position: int, piece: Piece) -> Piece:
        origin = (axis, position, piece.extent) if piece.base == FREE else piece
        return Piece(table.base(*key, origin), 1, piece.extent)

    dims: list[Dim] = [
        tuple(named(axis, position, piece) for position, piece in enumerate(dim))
        for axis, dim in enumerate(start.known_dims)
    ]
    return TermValue(term, tuple(dims))
