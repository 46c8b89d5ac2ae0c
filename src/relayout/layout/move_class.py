"""The class of a Transpose: what is left of its order where axes that stay together are one."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum


class MoveClass(Enum):
    """How a Transpose moves data, by how runtimes can carry it out."""

    NONE = "same order in memory"
    """Only axes of length 1 change places."""
    ROWS = "rows stay whole"
    """The innermost axis stays innermost: rows are copied whole."""
    MATRIX = "transpose of matrices"
    """Two axes change places, batch by batch."""
    AXIS = "one axis moves"
    SCATTER = "element by element"
    """Anything else."""


def move_class(perm: Sequence[int], lengths: Sequence[object]) -> MoveClass:
    """The class of a Transpose of a tensor of these lengths, of which some may not be numbers."""
    kept = [axis for axis in perm if lengths[axis] != 1]
    ranks = {axis: place for place, axis in enumerate(sorted(kept))}
    order = _merged([ranks[axis] for axis in kept])
    if len(order) <= 1:
        return MoveClass.NONE
    if order[-1] == len(order) - 1:
        return MoveClass.ROWS
    if order in ([1, 0], [0, 2, 1]):
        return MoveClass.MATRIX
    return MoveClass.AXIS if _moves_one(order) else MoveClass.SCATTER


def _merged(order: Sequence[int]) -> list[int]:
    """The order with runs of axes that follow each other before and after as one axis each."""
    firsts = [
        axis for place, axis in enumerate(order) if place == 0 or order[place - 1] != axis - 1
    ]
    ranks = {axis: place for place, axis in enumerate(sorted(firsts))}
    return [ranks[axis] for axis in firsts]


def _moves_one(order: list[int]) -> bool:
    """Whether all axes but one keep their places among each other."""
    return any(
        (rest := [axis for axis in order if axis != moved]) == sorted(rest) for moved in order
    )
