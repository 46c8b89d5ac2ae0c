"""Operators over named indices: from operands and columns to a term.

A *column* is an index an operator runs over, with the dimensions of operands that it walks. An
elementwise operator has a column for each dimension of its result; a product has one more, summed.
A column is cut where the pieces of its dimensions are cut, and parts that are neighbouring digits
in every operand are put together again (a *run*): so the term does not depend on how a model
stores, merges or orders its axes.

Why this is sound: the labels of a result's indices are pairwise distinct, and the key of a term
tells which index of which operand each label stands for. A label is the common piece of all
operands where they agree and nothing else could be meant by it; otherwise it is a base of its own,
made of (operand, piece) pairs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, permutations

from relayout.verify.proof.constants import settled
from relayout.verify.proof.lengths import Length, product, times
from relayout.verify.proof.pieces import FREE, Dim, Piece, coalesced, extent, joined, refined
from relayout.verify.proof.table import Key, NotKnownError, TermTable, TermValue

Place = tuple[int, int]
"""A column, and a position in it."""
Entries = tuple[tuple[int, Piece], ...]
"""By operand, the piece of it that an index walks."""


@dataclass(frozen=True)
class Column:
    """An index of an operator.

    `dims` are (operand, dimension). `role` says how the index is used: None if each element of the
    result sees one element along it, otherwise a name with parameters. An `ordered` index is not
    cut. `length` is that of the result where it differs; a column that is not `kept` has none.
    """

    dims: tuple[tuple[int, int], ...]
    role: Hashable = None
    kept: bool = True
    ordered: bool = False
    length: Length | None = None


@dataclass
class _Run:
    """Parts of columns that make up one index, outermost first, each with its extent."""

    entries: Entries
    parts: list[tuple[Place, Length]]
    constants: dict[int, Dim] = field(default_factory=dict)
    """By operand that is a constant, the pieces that the parts walk."""
    label: Piece = field(init=False)

    @property
    def slots(self) -> set[int]:
        return {slot for slot, _ in self.entries}

    @property
    def agreed(self) -> Piece | None:
        """The piece that all operands walk, if it is the same."""
        pieces = {piece for _, piece in self.entries}
        return pieces.pop() if len(pieces) == 1 else None

    def pieces_of(self, slot: int) -> Dim:
        """What the parts walk in a constant; along some it may not change."""
        return self.constants.get(slot, tuple(Piece(FREE, 0, n) for _, n in self.parts))

    def pieces(self) -> dict[Place, Piece]:
        """What each part counts, in terms of the label."""
        found, stride = {}, self.label.stride
        for place, length in reversed(self.parts):
            found[place] = Piece(self.label.base, stride, length)
            stride = times(stride, length)
        return found


def combined(
    table: TermTable,
    key: Key,
    operands: Sequence[TermValue],
    columns: Sequence[Column],
    *,
    commutative: bool = False,
) -> TermValue:
    """The result of an operator, with a dimension for each kept column."""
    frame = _IndexFrame(table, operands, columns)
    return frame.result_of_orders(key) if commutative else frame.result(key)


class _IndexFrame:
    def __init__(
        self, table: TermTable, operands: Sequence[TermValue], columns: Sequence[Column]
    ) -> None:
        self.table, self.columns, self.operands = table, list(columns), operands
        self.terms = [value.term for value in operands]
        self.fixed = {slot for slot, term in enumerate(self.terms) if term in table.arrays}
        self.free: dict[Place, Length] = {}
        self.wholes: dict[int, tuple[tuple[int, Dim], ...]] = {}
        self.counts = [0] * len(columns)
        parts: list[_Run] = []
        for number, column in enumerate(columns):
            cut = None if column.ordered else self._parts(number, column)
            if cut is None:
                self._take_whole(number, column)
                continue
            self.counts[number] = len(cut)
            parts += [part for part in cut if part.entries or part.constants]
        self.runs = self._runs(parts)
        self._settle_constants()

    def result_of_orders(self, key: Key) -> TermValue:
        """The result of operands in the order of their terms; the first of several such orders."""
        found, now = [], tuple(range(len(self.terms)))
        for order in _orders(self.terms):
            self._reorder({now.index(old): new for new, old in enumerate(order)})
            now = order
            found.append(self.result(key))
        return min(found, key=lambda value: value.term)

    def _reorder(self, place: dict[int, int]) -> None:
        """Gives operand i the place `place[i]`."""
        self.terms = [term for _, term in sorted((place[i], t) for i, t in enumerate(self.terms))]
        for run in self.runs:
            run.entries = tuple(sorted((place[slot], piece) for slot, piece in run.entries))
        for number, rows in self.wholes.items():
            self.wholes[number] = tuple(sorted((place[slot], dim) for slot, dim in rows))

    def result(self, key: Key) -> TermValue:
        joins = self._label()
        labels = {place: piece for run in self.runs for place, piece in run.pieces().items()}
        labels |= {place: Piece(FREE, 0, length) for place, length in self.free.items()}
        uses = self._uses()
        dims: list[Dim] = []
        for number, column in enumerate(self.columns):
            if not column.kept:
                continue
            if column.ordered:
                dims.append(self._whole(number, uses[number]))
            else:
                dims.append(coalesced(labels[number, i] for i in range(self.counts[number])))
        roles = self._roles() | set(uses.values())
        return TermValue(
            self.table.term(*key, tuple(self.terms), joins, frozenset(roles)), tuple(dims)
        )

    def _rows(self, column: Column) -> list[tuple[int, Dim]]:
        return [
            (number, self.operands[number].known_dims[dim]) for number, dim in sorted(column.dims)
        ]

    def _take_whole(self, number: int, column: Column) -> None:
        """Takes a column as it is: its order matters, or its parts cannot be told apart."""
        rows = self.wholes[number] = tuple(self._rows(column))
        if not column.ordered:
            lengths = [extent(dim) for _, dim in rows if dim]
            for length in lengths[1:]:
                self.table.must_equal(lengths[0], length)
            self.columns[number] = replace(column, ordered=True, length=lengths[0])

    def _parts(self, number: int, column: Column) -> list[_Run] | None:
        """A column cut where its dimensions are cut, or None where they do not fit together."""
        rows = [(slot, dim) for slot, dim in self._rows(column) if dim]
        cut = refined([dim for _, dim in rows]) if rows else []
        if cut is None:
            return None
        runs = []
        for position, pieces in enumerate(cut):
            place, length = (number, position), pieces[0].extent
            walked = {slot: piece for (slot, _), piece in zip(rows, pieces, strict=True)}
            entries = tuple(
                (slot, piece)
                for slot, piece in walked.items()
                if piece.base != FREE and slot not in self.fixed
            )
            constants: dict[int, Dim] = {
                slot: (piece,)
                for slot, piece in walked.items()
                if piece.base != FREE and slot in self.fixed
            }
            runs.append(_Run(entries, [(place, length)], constants))
            if not entries and not constants:
                self.free[place] = length
        return runs

    def _runs(self, parts: list[_Run]) -> list[_Run]:
        """Parts that are neighbouring digits in every operand, put together."""
        by_stride = {self._at(part, inner=True): part for part in parts}
        inner_of: dict[int, _Run] = {}
        for part in parts:
            outer = by_stride.get(self._at(part, inner=False))
            if outer is not None and outer is not part:
                inner_of[id(outer)] = part
        inner_ones = {id(part) for part in inner_of.values()}
        runs = []
        for part in parts:
            if id(part) in inner_ones:
                continue
            run, last = part, part
            while id(last) in inner_of:
                last = inner_of[id(last)]
                run = _joined_runs(run, last)
            runs.append(run)
        return runs

    def _at(self, part: _Run, *, inner: bool) -> Hashable:
        """Where the part begins in each operand, or where the part outside of it would.

        Constants follow the others; where there are no others, the order in which a constant is
        stored counts within a dimension only.
        """
        number = part.parts[0][0][0]
        column = self.columns[number]
        entries = part.entries or tuple((s, dim[0]) for s, dim in part.constants.items())
        return (column.role, column.kept, None if part.entries else number), tuple(
            (slot, base, stride if inner else times(stride, length))
            for slot, (base, stride, length) in entries
        )

    def _settle_constants(self) -> None:
        """A constant gets an axis for each index that walks it."""
        for slot in self.fixed:
            runs = [run for run in self.runs if slot in run.constants]
            wholes = [n for n, rows in self.wholes.items() if any(s == slot and d for s, d in rows)]
            groups = [run.constants[slot] for run in runs]
            groups += [dim for n in wholes for s, dim in self.wholes[n] if s == slot]
            self.terms[slot], names = settled(self.table, self.terms[slot], groups)
            for run, name in zip(runs, names, strict=False):
                if name.base != FREE:
                    run.entries = tuple(sorted((*run.entries, (slot, name))))
            for n, name in zip(wholes, names[len(runs) :], strict=True):
                rows = self.wholes[n]
                self.wholes[n] = tuple((s, (name,) if s == slot else d) for s, d in rows)
        self.free |= {place: n for run in self.runs if not run.entries for place, n in run.parts}
        self.runs = [run for run in self.runs if run.entries]

    def _label(self) -> frozenset[Hashable]:
        """Gives each run its label; the labels that are bases of their own."""
        plain = not self._ambiguous()
        joins: set[Hashable] = set()
        for run in self.runs:
            agreed = run.agreed
            if plain and agreed is not None:
                run.label = agreed
                continue
            run.label = self._own_label(run)
            joins.add(run.label)
        return frozenset(joins)

    def _own_label(self, run: _Run) -> Piece:
        length = product([length for _, length in run.parts])
        return Piece(self.table.base("join", run.entries), 1, length)

    def _ambiguous(self) -> bool:
        """Whether a common piece could be taken for another index of the same result."""
        agreed = [(run.agreed, run.slots) for run in self.runs]
        plain = [(piece.base, slots) for piece, slots in agreed if piece is not None]
        own = {self._own_label(run).base for run in self.runs if run.agreed is None}
        if any(base in own for base, _ in plain):
            return True
        return any(
            one == other and not slots & others
            for (one, slots), (other, others) in combinations(plain, 2)
        )

    def _roles(self) -> set[Hashable]:
        roles: set[Hashable] = set()
        for run in self.runs:
            column = self.columns[run.parts[0][0][0]]
            if column.role is not None:
                roles.add((column.role, run.label))
        free: dict[Hashable, Length] = {}
        for (number, _), length in self.free.items():
            role = self.columns[number].role
            if role is not None:
                free[role] = times(free.get(role, 1), length)
        return roles | {(role, "free", length) for role, length in free.items()}

    def _uses(self) -> dict[int, Key]:
        """By ordered column how it is used; of several with the same use, which of them it is."""
        met: Counter[Key] = Counter()
        uses: dict[int, Key] = {}
        for number, rows in self.wholes.items():
            use = (self.columns[number].role, tuple((slot, dim) for slot, dim in rows if dim))
            uses[number] = (*use, met[use])
            met[use] += 1
        return uses

    def _whole(self, number: int, use: Key) -> Dim:
        """What an ordered column counts in the result."""
        length, rows = self.columns[number].length, self.wholes[number]
        if length is None:
            dims = [dim for _, dim in rows if dim]
            if len(dims) > 1:
                raise NotKnownError("an ordered index of several operands")
            dim = dims[0] if dims else ()
            if all(piece.base != FREE for piece in dim):
                return dim
            # What is the same all along may yet change along the result, as sums so far do.
            length = extent(dim)
        dim = self.table.axis(length, "index", *use)
        # The operands may have an index that was made in the same way: it is not this one.
        taken = any(piece.base == run.label.base for run in self.runs for piece in dim)
        return self.table.axis(length, "other index", tuple(self.terms), *use) if taken else dim


def _joined_runs(outer: _Run, inner: _Run) -> _Run:
    entries = []
    for (slot, one), (_, other) in zip(outer.entries, inner.entries, strict=True):
        both = joined(one, other)
        assert both is not None
        entries.append((slot, both))
    constants = {
        slot: (*outer.pieces_of(slot), *inner.pieces_of(slot))
        for slot in {**outer.constants, **inner.constants}
    }
    return _Run(tuple(entries), [*outer.parts, *inner.parts], constants)


def _orders(terms: Sequence[int]) -> list[tuple[int, ...]]:
    """The orders by term; several where terms repeat."""
    order = tuple(sorted(range(len(terms)), key=terms.__getitem__))
    ranked = [terms[i] for i in order]
    if len(set(ranked)) == len(ranked) or len(ranked) > 3:
        return [order]
    return [o for o in permutations(order) if [terms[i] for i in o] == ranked]
