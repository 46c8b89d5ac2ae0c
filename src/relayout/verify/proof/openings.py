"""Terms taken apart again: their operands, as a value of such a term holds them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from relayout.verify.proof.lengths import Length, quotient, times
from relayout.verify.proof.pieces import FREE, Dim, Piece, coalesced, refined, split
from relayout.verify.proof.table import NotKnownError, TermTable, TermValue

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


@dataclass(frozen=True)
class AxisMaking:
    """An operator that does something along some axes, and nothing along the others.

    Its operands have the rank of the result, and the same indices along the other axes.
    """

    kind: str
    dims: tuple[Dim, ...]
    operands: tuple[TermValue, ...]
    axes: tuple[int, ...]
    what: object
    """What it does, as the operator itself states it."""


@dataclass(frozen=True)
class OpenedAxes:
    """A value that such an operator made: its operands with dimensions as the value's."""

    making: AxisMaking
    operands: tuple[TermValue, ...]
    places: Mapping[int, int]
    """By axis of the operator, the dimension of the value that it is."""


def opened_axes(table: TermTable, kind: str, value: TermValue) -> OpenedAxes | None:
    """A value made by an operator of this kind; None where a view merged or cut its axes."""
    making = table.makings.get(value.term)
    if not isinstance(making, AxisMaking) or making.kind != kind or value.dims is None:
        return None
    places = {axis: _only_place(value.dims, making.dims[axis]) for axis in making.axes}
    known = {axis: place for axis, place in places.items() if place is not None}
    if len(known) < len(places):
        return None
    operands = [_operand_along(making, operand, value.dims, known) for operand in making.operands]
    found = tuple(operand for operand in operands if operand is not None)
    return OpenedAxes(making, found, known) if len(found) == len(operands) else None


def _only_place(dims: Sequence[Dim], wanted: Dim) -> int | None:
    """Which dimension counts these pieces and no other does in part."""
    places = [place for place, dim in enumerate(dims) if dim == wanted]
    bases = {piece.base for piece in wanted}
    met = [place for place, dim in enumerate(dims) if bases & {piece.base for piece in dim}]
    return places[0] if wanted and places == met and len(places) == 1 else None


def _operand_along(
    making: AxisMaking, operand: TermValue, dims: Sequence[Dim], places: Mapping[int, int]
) -> TermValue | None:
    others = [axis for axis in range(len(making.dims)) if axis not in places]
    own = operand.known_dims
    pairs = _pairs([making.dims[axis] for axis in others], [own[axis] for axis in others])
    taken = set(places.values())
    rest = [place for place in range(len(dims)) if place not in taken]
    moved = None if pairs is None else _replaced([dims[place] for place in rest], pairs)
    if moved is None:
        return None
    found = dict(zip(rest, moved, strict=True)) | {places[axis]: own[axis] for axis in places}
    try:
        return TermValue(operand.term, tuple(found[place] for place in range(len(dims))))
    except NotKnownError:
        return None


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
