"""Elementwise terms taken apart again: their operands, as a value of that term holds them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from relayout.verify.proof.lengths import Length, quotient, times
from relayout.verify.proof.pieces import FREE, Dim, Piece, coalesced, refined, split
from relayout.verify.proof.table import TermTable, TermValue

_Pairs = list[tuple[Piece, Piece]]
"""Pieces of a result and, by each, what an operand counts there."""


@dataclass(frozen=True)
class Making:
    """An elementwise operator, the dimensions of a result of it, and its operands.

    The operands have the rank of the result; where one does not change along a dimension it may
    have it once or as often as the result.
    """

    kind: str
    dims: tuple[Dim, ...]
    operands: tuple[TermValue, ...]


def opened(table: TermTable, kind: str, value: TermValue) -> list[TermValue] | None:
    """The operands of a value made by an operator of this kind, with dimensions as the value's."""
    making = table.makings.get(value.term)
    if making is None or making.kind != kind or value.dims is None:
        return None
    found = []
    for operand in making.operands:
        pairs = _pairs(making.dims, operand.known_dims)
        dims = None if pairs is None else _replaced(value.dims, pairs)
        if dims is None:
            return None
        found.append(TermValue(operand.term, dims))
    return found


def _pairs(result: Sequence[Dim], operand: Sequence[Dim]) -> _Pairs | None:
    pairs: _Pairs = []
    for whole, own in zip(result, operand, strict=True):
        if not own:
            pairs += [(piece, Piece(FREE, 0, piece.extent)) for piece in whole]
            continue
        rows = refined([whole, own])
        if rows is None:
            return None
        pairs += [(one, other) for one, other in rows]
    return [pair for pair in pairs if pair[0].base != FREE]


def _replaced(dims: Sequence[Dim], pairs: _Pairs) -> tuple[Dim, ...] | None:
    """The dimensions with pieces of the result replaced by those of an operand."""
    found = []
    for dim in dims:
        pieces: list[Piece] = []
        for piece in dim:
            own = (piece,) if piece.base == FREE else _counted(piece, pairs)
            if own is None:
                return None
            pieces += own
        found.append(coalesced(pieces))
    return tuple(found)


def _counted(piece: Piece, pairs: _Pairs) -> Dim | None:
    """What the operand counts where the result counts this piece."""
    same = [pair for pair in pairs if pair[0].base == piece.base]
    for whole, own in same:
        inside = _inside(piece, whole, own)
        if inside is not None:
            return (inside,)
    for inner in _borders(piece, [whole for whole, _ in same]):
        parts = split(piece, inner)
        assert parts is not None
        counted = [_counted(part, same) for part in parts]
        if counted[0] is not None and counted[1] is not None:
            return (*counted[0], *counted[1])
    return None


def _inside(piece: Piece, whole: Piece, own: Piece) -> Piece | None:
    """The digits of `own` that stand for those of `piece`, if these are digits of `whole`."""
    below = quotient(piece.stride, whole.stride)
    top = times(whole.stride, whole.extent)
    if below is None or quotient(top, times(piece.stride, piece.extent)) is None:
        return None
    if own.base == FREE:
        return Piece(FREE, 0, piece.extent)
    return Piece(own.base, times(own.stride, below), piece.extent)


def _borders(piece: Piece, wholes: Sequence[Piece]) -> Iterator[Length]:
    """How much of a piece lies inside of a border between others, where that cuts the piece."""
    for whole in wholes:
        inner = quotient(times(whole.stride, whole.extent), piece.stride)
        if inner is None or inner in (1, piece.extent) or split(piece, inner) is None:
            continue
        yield inner
