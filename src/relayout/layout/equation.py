"""Equations that name the axes of operands and result, and what a plain kernel copies for one."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import TypeAlias

from relayout.layout.permutation import Permutation

DOTS = "..."

LetterLengths: TypeAlias = Mapping[str, int]
"""How long the axis of each letter is."""


@dataclass(frozen=True, slots=True)
class Equation:
    """The letters of every operand and of the result; dots are axes without a name."""

    terms: tuple[str, ...]
    result: str | None
    """None where it follows from the terms."""

    @classmethod
    def of(cls, text: str) -> Equation:
        left, arrow, right = text.replace(" ", "").partition("->")
        return cls(tuple(left.split(",")), right if arrow else None)

    def __str__(self) -> str:
        left = ",".join(self.terms)
        return left if self.result is None else f"{left}->{self.result}"

    @property
    def explicit_result(self) -> str:
        """The result in full: the axes without a name, then what occurs once, sorted."""
        if self.result is not None:
            return self.result
        counts = Counter("".join(self.terms).replace(".", ""))
        letters = sorted(letter for letter, count in counts.items() if count == 1)
        return (DOTS if any(DOTS in term for term in self.terms) else "") + "".join(letters)

    def with_operand(self, index: int, order: Permutation) -> Equation | None:
        """The equation for an operand stored in `order`.

        An implicit result stays: it depends on how often a letter occurs, not on where.
        """
        moved = _moved(self.terms[index], order) if index < len(self.terms) else None
        if moved is None:
            return None
        return replace(self, terms=(*self.terms[:index], moved, *self.terms[index + 1 :]))

    def with_result(self, order: Permutation) -> Equation | None:
        """The equation that gives the result stored in `order`."""
        moved = _moved(self.explicit_result, order)
        return None if moved is None else replace(self, result=moved)

    def axes(self, ranks: Sequence[int]) -> tuple[str, ...] | None:
        """One letter per axis of each operand and of the result, if the equation fits them.

        Axes without a name are counted from the last one of their dots.
        """
        terms = (*self.terms, self.explicit_result)
        if len(ranks) != len(terms):
            return None
        named = [_named(term, rank) for term, rank in zip(terms, ranks, strict=True)]
        return tuple(term for term in named if term is not None) if None not in named else None


def _moved(term: str, order: Permutation) -> str | None:
    """A term whose letters follow their axes; the axes without a name must stay together."""
    head, dots, tail = term.partition(DOTS)
    unnamed = order.rank - len(head + tail)
    if unnamed < 0 or (unnamed > 0 and not dots):
        return None
    places = [*head, *range(unnamed), *tail]
    moved = list(order.reorder(places))
    run = [place for place in moved if isinstance(place, int)]
    start = moved.index(0) if run else len(head)
    if moved[start : start + unnamed] != sorted(run):
        return None
    letters = [str(place) for place in moved if not isinstance(place, int)]
    return "".join([*letters[:start], dots, *letters[start:]])


def _named(term: str, rank: int) -> str | None:
    head, dots, tail = term.partition(DOTS)
    unnamed = rank - len(head + tail)
    if unnamed < 0 or (unnamed > 0 and not dots):
        return None
    return head + "".join(chr(ord("0") + place) for place in reversed(range(unnamed))) + tail


def copied_elements(terms: Sequence[str], lengths: Sequence[LetterLengths]) -> int:
    """What has to be copied by a kernel that multiplies matrices as they lie in memory.

    It reads rows after the batch and the summed axes last, columns last and the summed axes
    before them, and gives rows, then columns; each operand may be the one of the rows. `terms`
    are the axes of the operands, then those of the result, without such of length 1; more than
    two operands are multiplied one after the other, each as cheaply as it can be.
    """
    *operands, result = ["".join(dict.fromkeys(term)) for term in terms]
    first, *others = operands
    size, copied = lengths[0], 0
    for place, other in enumerate(others, 1):
        kept = {*result, *"".join(others[place:])}
        left, right = _only(first, {*kept, *other}), _only(other, {*kept, *first})
        wanted = result if place == len(others) else None
        sizes = (size, lengths[place], {**lengths[place], **size, **lengths[-1]})
        more, first = min(_placings(left, right, wanted, kept, sizes), key=lambda found: found[0])
        size, copied = sizes[-1], copied + more
    if not others and _only(first, result) != result:
        copied += _count(result, lengths[-1])
    return copied


def _placings(
    left: str, right: str, result: str | None, kept: set[str], sizes: tuple[LetterLengths, ...]
) -> Iterator[tuple[int, str]]:
    """What is copied, and the order of the product, for every order of the groups of axes."""
    shared = set(left) & set(right)
    batch, summed = shared & kept, shared - kept
    for swapped in (False, True):
        one, other = (right, left) if swapped else (left, right)
        given = result or "".join(dict.fromkeys(one + other))
        groups = (
            _orders(batch, (one, other, given)),
            _orders(set(one) - shared, (one, given)),
            _orders(summed, (one, other)),
            _orders(set(other) - shared, (other, given)),
        )
        size_of_one, size_of_other = (sizes[1], sizes[0]) if swapped else sizes[:2]
        for b, rows, s, columns in product(*groups):
            made = b + rows + columns
            yield (
                _copy(one, b + rows + s, size_of_one)
                + _copy(other, b + s + columns, size_of_other)
                + _copy(result or made, made, sizes[-1]),
                made,
            )


def _orders(group: set[str], terms: Iterable[str]) -> list[str]:
    """The orders of some axes in the terms that have them."""
    return list(dict.fromkeys(_only(term, group) for term in terms))


def _only(term: str, letters: Iterable[str]) -> str:
    wanted = set(letters)
    return "".join(letter for letter in term if letter in wanted)


def _copy(stored: str, wanted: str, lengths: LetterLengths) -> int:
    return 0 if stored == wanted else _count(wanted, lengths)


def _count(term: str, lengths: LetterLengths) -> int:
    return math.prod(lengths[letter] for letter in term)
