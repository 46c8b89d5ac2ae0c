"""Terms, bases and values: what both models are written in.

A *term* is a scalar function of named indices (`pieces.py`): what a tensor holds, whatever the
order in which it is stored. Terms are interned: two tensors with the same term hold the same
numbers, and with the same dimensions they are the same tensor.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import isclose
from typing import Any, NamedTuple

from relayout.verify.proof.canonical import Canonical
from relayout.verify.proof.contents import Contents
from relayout.verify.proof.lengths import UNSTABLE, Length, replaced
from relayout.verify.proof.near import NearConstants
from relayout.verify.proof.pieces import Dim, Piece, coalesced, distinct, extent

Key = tuple[Hashable, ...]

# Factors this near to each other are one factor that was rounded in two ways.
FACTOR_TOLERANCE = 1e-6


class NotKnownError(Exception):
    """The proof has no rule for this use of an operator; the message says which."""


class Data(NamedTuple):
    """The elements of a small tensor of whole numbers, in order, and their type."""

    kind: str
    elements: tuple[Length, ...]


@dataclass(frozen=True, slots=True)
class TermValue:
    """A tensor: its term and what each of its dimensions counts.

    `dims` is None where the rank is not known. `data` is there if it is a small tensor of whole
    numbers that are known, such as a shape.
    """

    term: int
    dims: tuple[Dim, ...] | None
    data: Data | None = None

    def __post_init__(self) -> None:
        """Refuses a tensor two of whose indices could be taken for each other."""
        if self.dims is not None and not distinct(piece for dim in self.dims for piece in dim):
            raise NotKnownError("an index that a tensor would have twice")

    @property
    def known_dims(self) -> tuple[Dim, ...]:
        if self.dims is None:
            raise NotKnownError("a tensor of unknown rank")
        return self.dims

    @property
    def rank(self) -> int:
        return len(self.known_dims)

    @property
    def shape(self) -> tuple[Length, ...]:
        return tuple(extent(dim) for dim in self.known_dims)

    @property
    def pieces(self) -> tuple[Piece, ...]:
        return tuple(piece for dim in self.known_dims for piece in dim)

    def without_data(self) -> TermValue:
        return TermValue(self.term, self.dims)

    def with_dims(self, dims: Sequence[Dim]) -> TermValue:
        return TermValue(self.term, tuple(dims), self.data)


@dataclass
class TermTable:
    """All terms and bases of both models, each once."""

    terms: list[Key] = field(default_factory=list)
    bases: list[Key] = field(default_factory=list)
    arrays: dict[int, Any] = field(default_factory=dict)
    """The numbers of a constant, as they are stored."""
    canonical: dict[Hashable, Canonical] = field(default_factory=dict)
    """Constants with axes of their own, which readings of the same models share."""
    contents: Contents = field(default_factory=Contents)
    """What arrays hold; shared likewise."""
    lengths: set[Length] = field(default_factory=set)
    """Lengths of tensors that models ask for: at least 0, whatever they are made of."""
    ledger: Counter[str] | None = None
    """Steps that change rounding, by name, if the proof may take such; None if not."""
    factors: list[float] = field(default_factory=list)
    near: NearConstants = field(default_factory=NearConstants)
    facts: Mapping[str, Length] = field(default_factory=dict)
    """Open lengths that are known to be others, or numbers."""
    equations: dict[tuple[Length, Length], None] = field(default_factory=dict)
    """Lengths that are equal wherever the model runs, as found while it is read."""
    guesses: dict[tuple[Length, Length], None] = field(default_factory=dict)
    """Open lengths that meet where one might be 1."""
    computed: dict[Key, list[TermValue]] = field(default_factory=dict)
    """Results by what nodes do and to what: models that are compared have most nodes in common."""
    makings: dict[int, Any] = field(default_factory=dict)
    """By term that can be taken apart again, how it was made (`openings.py`)."""
    flat: dict[int, Dim] = field(default_factory=dict)
    """By base that numbers the elements of other pieces, those pieces."""
    _names: dict[int, str] = field(default_factory=dict)
    _unlike: int = 0
    _term_ids: dict[Key, int] = field(default_factory=dict)
    _base_ids: dict[Key, int] = field(default_factory=dict)

    def anew(self, facts: Mapping[str, Length]) -> TermTable:
        """An empty table for the same models, with what is known of their lengths."""
        ledger = None if self.ledger is None else Counter[str]()
        return TermTable(
            facts=facts, ledger=ledger, canonical=self.canonical, contents=self.contents
        )

    def must_equal(self, left: Length, right: Length) -> None:
        """Notes two lengths that are equal wherever the model runs."""
        if left != right:
            self.equations[left, right] = None

    @contextmanager
    def perhaps(self) -> Iterator[None]:
        """For what may never run: which lengths it needs to be equal says nothing about others."""
        before = dict(self.equations)
        yield
        self.equations = before

    def known(self, length: Length) -> Length:
        return replaced(length, self.facts)

    def step(self, name: str) -> bool:
        """Whether a step that changes rounding may be taken, which is then counted."""
        if self.ledger is None:
            return False
        self.ledger[name] += 1
        return True

    def factor(self, number: float) -> float:
        """The factor or, where rounding may change, one met before that is rounded otherwise."""
        if self.ledger is None:
            return number
        known = (one for one in self.factors if isclose(one, number, rel_tol=FACTOR_TOLERANCE))
        found = next(known, None)
        if found is None:
            self.factors.append(number)
            return number
        if found != number:
            self.step("factors rounded otherwise")
        return found

    def term(self, *key: Hashable) -> int:
        known = self._term_ids.get(key)
        if known is None:
            known = self._term_ids[key] = len(self.terms)
            self.terms.append(key)
        return known

    def base(self, *key: Hashable) -> int:
        known = self._base_ids.get(key)
        if known is None:
            known = self._base_ids[key] = len(self.bases)
            self.bases.append(key)
        return known

    def axis(self, length: Length, *key: Hashable) -> Dim:
        """A dimension that counts a whole base of its own; none where the length is 1."""
        length = self.known(length)
        return () if length == 1 else (Piece(self.base(*key), 1, length),)

    def unflattened(self, dim: Dim) -> Dim:
        """The dimension with indices that number the elements of other pieces replaced by these."""
        plain = coalesced(dim)
        result = coalesced(one for piece in plain for one in self._numbered(piece))
        return result if distinct(result) else plain

    def _numbered(self, piece: Piece) -> Dim:
        """The pieces whose elements this one numbers as a whole, or the piece itself."""
        pieces = self.flat.get(piece.base, ())
        return pieces if pieces and extent(pieces) == piece.extent else (piece,)

    def flattened(self, pieces: Dim) -> Dim:
        """An index of its own for the row-major number of the elements of these pieces."""
        dim = self.axis(extent(pieces), "flat", pieces)
        self.flat |= {piece.base: pieces for piece in dim}
        return dim

    def unlike_any(self) -> Hashable:
        """A part of a key that makes a term equal to no other."""
        self._unlike += 1
        return "unlike any other", self._unlike

    def called(self, term: int, name: str | None) -> str:
        """What a tensor of which nothing is known was called when it was met first."""
        return self._names.setdefault(term, name or f"{UNSTABLE}{term}")

    def opaque(self, key: Key, shape: Sequence[Length] | None) -> TermValue:
        """A tensor of which nothing but its origin is known."""
        term = self.term(*key)
        if shape is None:
            return TermValue(term, None)
        return TermValue(term, tuple(self.axis(n, "of", term, i) for i, n in enumerate(shape)))
