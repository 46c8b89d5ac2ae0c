"""Images of other sizes, in one form whether sums are taken before or after they are resized.

Each pixel of a resized image is a sum of others with weights that add up to 1 and depend on the
places alone. So sums and products along other indices may come first, and what does not change
along the resized ones is the same after it: only rounding tells such apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from relayout.verify.proof.frames import Column, combined
from relayout.verify.proof.lengths import Length
from relayout.verify.proof.openings import AxisMaking, opened, opened_axes
from relayout.verify.proof.operators.linear import SUM_KIND, added
from relayout.verify.proof.pieces import FREE, free
from relayout.verify.proof.table import Key, TermTable, TermValue

RESIZED = "resize"


class Stretch(NamedTuple):
    """How a dimension is resized, and its length then."""

    scale: float | None
    length: Length


@dataclass(frozen=True)
class Resizing:
    """What a Resize does, whatever it is applied to."""

    key: Key
    stretches: Mapping[int, Stretch]
    """By dimension."""

    def at(self, places: Mapping[int, int]) -> Resizing:
        """The same along other dimensions."""
        return Resizing(self.key, {places[axis]: each for axis, each in self.stretches.items()})


def resized(table: TermTable, resizing: Resizing, value: TermValue) -> TermValue:
    """An image that is resized along some of its dimensions, or stays as it is."""
    if not resizing.stretches:
        return value
    parts = None if table.ledger is None else opened(table, SUM_KIND, value)
    if parts is not None:
        alike = [part for part in parts if _is_alike(part, resizing)]
        others = [part for part in parts if part not in alike]
        if alike and others:
            table.step("sums moved past resizing")
            made = _resized(table, resizing, added(table, others))
            return added(table, [made, *(_stretched(part, resizing) for part in alike)])
    return _resized(table, resizing, value)


def _resized(table: TermTable, resizing: Resizing, value: TermValue) -> TermValue:
    columns = [Column(((0, axis),)) for axis in range(value.rank)]
    for axis, stretch in resizing.stretches.items():
        role = ("resize", stretch.scale, stretch.length)
        columns[axis] = Column(((0, axis),), role, ordered=True, length=stretch.length)
    result = combined(table, resizing.key, [value], columns)
    if table.ledger is not None:
        axes = tuple(resizing.stretches)
        making = AxisMaking(RESIZED, result.known_dims, (value,), axes, resizing)
        table.makings.setdefault(result.term, making)
    return result


def _is_alike(part: TermValue, resizing: Resizing) -> bool:
    """Whether all pixels of a part are the same."""
    dims = (part.known_dims[axis] for axis in resizing.stretches)
    return all(piece.base == FREE for dim in dims for piece in dim)


def _stretched(part: TermValue, resizing: Resizing) -> TermValue:
    dims = list(part.known_dims)
    for axis, stretch in resizing.stretches.items():
        dims[axis] = free(stretch.length)
    return part.with_dims(dims)


@dataclass(frozen=True)
class Enlarged:
    """A value that is an image which was resized."""

    source: TermValue
    resizing: Resizing
    places: Mapping[int, int]
    """By axis of the Resize, the dimension of the value that it is."""


def enlarged(table: TermTable, value: TermValue) -> Enlarged | None:
    """A value as an image that was resized, with what was added to all of its pixels alike."""
    plain = _opened(table, value)
    parts = opened(table, SUM_KIND, value) if plain is None else None
    if parts is None:
        return plain
    found = [(part, one) for part in parts if (one := _opened(table, part)) is not None]
    if len(found) != 1:
        return None
    part, image = found[0]
    at = image.resizing.at(image.places)
    others = [other for other in parts if other is not part]
    if not all(_is_alike(other, at) for other in others):
        return None
    small = {place: Stretch(None, image.source.shape[place]) for place in at.stretches}
    shrunk = [_stretched(other, Resizing(at.key, small)) for other in others]
    table.step("sums moved past resizing")
    return Enlarged(added(table, [image.source, *shrunk]), image.resizing, image.places)


def _opened(table: TermTable, value: TermValue) -> Enlarged | None:
    found = opened_axes(table, RESIZED, value)
    if found is None or not isinstance(found.making.what, Resizing):
        return None
    return Enlarged(found.operands[0], found.making.what, found.places)


def walked_alone(
    columns: Sequence[Column], number: int, places: Mapping[int, int]
) -> Mapping[int, int] | None:
    """By dimension of an operand that was resized, the dimension of the result that only it walks.

    None if another operand walks one of them too, or if it is summed over.
    """
    kept = [column for column in columns if column.kept]
    found: dict[int, int] = {}
    for axis, place in places.items():
        alone = [i for i, column in enumerate(kept) if column.dims == ((number, place),)]
        if len(alone) != 1 or kept[alone[0]].role is not None or kept[alone[0]].ordered:
            return None
        found[axis] = alone[0]
    return found
