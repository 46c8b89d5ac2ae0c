"""Pieces of axes: which digits of which index a dimension of a tensor counts.

A *base* is a named index, with a length. A *piece* of it, with a stride and an extent, is a run of
digits of that index: (index // stride) % extent. A dimension is a sequence of pieces, outermost
first. Views cut and move pieces and compute nothing. A piece of the base `FREE` is one along which
the values do not change.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import NamedTuple

from relayout.verify.proof.lengths import Length, product, quotient, times

FREE = -1


class Piece(NamedTuple):
    base: int
    stride: Length
    extent: Length


Dim = tuple[Piece, ...]


def free(extent: Length) -> Dim:
    return () if extent == 1 else (Piece(FREE, 0, extent),)


def extent(pieces: Iterable[Piece]) -> Length:
    return product([piece.extent for piece in pieces])


def split(piece: Piece, inner: Length) -> tuple[Piece, Piece] | None:
    """The piece as two of which the second has the extent `inner`."""
    outer = quotient(piece.extent, inner)
    if outer is None:
        return None
    if piece.base == FREE:
        return Piece(FREE, 0, outer), Piece(FREE, 0, inner)
    return (
        Piece(piece.base, times(piece.stride, inner), outer),
        Piece(piece.base, piece.stride, inner),
    )


def joined(outer: Piece, inner: Piece) -> Piece | None:
    """Both as one piece, if they are neighbouring digits of one index."""
    if outer.base != inner.base:
        return None
    whole = times(outer.extent, inner.extent)
    if outer.base == FREE:
        return Piece(FREE, 0, whole)
    if outer.stride != times(inner.stride, inner.extent):
        return None
    return Piece(outer.base, inner.stride, whole)


def distinct(pieces: Iterable[Piece]) -> bool:
    """Whether no digit of an index is counted twice, so that no piece can be taken for another."""
    by_base: dict[int, list[Piece]] = {}
    for piece in pieces:
        if piece.base != FREE:
            by_base.setdefault(piece.base, []).append(piece)
    return all(
        _apart(one, other) for same in by_base.values() for one, other in combinations(same, 2)
    )


def _apart(one: Piece, other: Piece) -> bool:
    """Whether one of two pieces of an index lies wholly outside of the other."""
    return any(
        quotient(outer.stride, times(inner.stride, inner.extent)) is not None
        for outer, inner in ((one, other), (other, one))
    )


def coalesced(pieces: Iterable[Piece]) -> Dim:
    result: list[Piece] = []
    for piece in pieces:
        if piece.extent == 1:
            continue
        both = joined(result[-1], piece) if result else None
        if both is None:
            result.append(piece)
        else:
            result[-1] = both
    return tuple(result)


def cut(pieces: Sequence[Piece], lengths: Sequence[Length]) -> list[Dim] | None:
    """Consecutive groups of the given lengths, or None where a border falls into a piece."""
    rest, groups = list(reversed(pieces)), []
    for length in lengths:
        group, want = [], length
        while want != 1:
            if not rest or want == 0 or rest[-1].extent == 0:
                return None
            piece = rest.pop()
            after = quotient(want, piece.extent)
            if after is not None:
                group.append(piece)
                want = after
                continue
            inner = quotient(piece.extent, want)
            both = None if inner is None else split(piece, inner)
            if both is None:
                return None
            group.append(both[0])
            rest.append(both[1])
            want = 1
        groups.append(tuple(group))
    return None if rest else groups


def refined(rows: Sequence[Sequence[Piece]]) -> list[tuple[Piece, ...]] | None:
    """Rows of pieces cut at each other's borders: a tuple for each common part, outermost first."""
    stacks, parts = [list(row) for row in rows], []
    while any(stacks):
        if not all(stacks):
            return None
        least = _least([stack[-1].extent for stack in stacks])
        if least is None:
            return None
        part = []
        for stack in stacks:
            piece = stack.pop()
            both = (None, piece) if piece.extent == least else split(piece, least)
            assert both is not None
            if both[0] is not None:
                stack.append(both[0])
            part.append(both[1])
        parts.append(tuple(part))
    return parts[::-1]


def _least(extents: list[Length]) -> Length | None:
    """The extent that divides all others."""
    return next(
        (one for one in extents if all(quotient(other, one) is not None for other in extents)), None
    )
