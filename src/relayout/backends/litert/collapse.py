"""Neighbouring axes taken as one, so that kernels for few axes do what was asked for many."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import permutations

from relayout.backends.litert.flat_graph import FlatShape

MOST_SEARCHED = 8
"""Axes whose orders are all tried."""


def grouped_axes(kinds: Sequence[object]) -> list[list[int]]:
    """Neighbours of the same kind together; an axis of kind None goes with any neighbour."""
    groups: list[list[int]] = []
    last: object = None
    for axis, kind in enumerate(kinds):
        if groups and (kind is None or last is None or kind == last):
            groups[-1].append(axis)
        else:
            groups.append([axis])
            last = None
        last = last if kind is None else kind
    return groups


def merged(shape: FlatShape, groups: Sequence[Sequence[int]]) -> FlatShape:
    return tuple(math.prod(shape[axis] for axis in group) for group in groups)


def around_axis(shape: FlatShape, axis: int) -> FlatShape:
    """The axes before one, that one, and those after it, as three."""
    return math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])


def broadcast_groups(shapes: Sequence[FlatShape]) -> list[list[int]]:
    """The axes of shapes of one rank that broadcast alike: each operand has all of them or none."""
    rank = len(shapes[0])
    whole = [max(shape[axis] for shape in shapes) for axis in range(rank)]
    kinds = [
        None if whole[axis] == 1 else tuple(shape[axis] == 1 for shape in shapes)
        for axis in range(rank)
    ]
    return grouped_axes(kinds)


def moved_groups(shape: FlatShape, perm: Sequence[int]) -> tuple[FlatShape, tuple[int, ...]]:
    """A Transpose without axes of length 1, and with axes as one that stay side by side."""
    places = [axis for axis in perm if shape[axis] != 1]
    runs: list[list[int]] = []
    for axis in places:
        before = runs[-1][-1] if runs else None
        follows = before is not None and all(
            shape[between] == 1 for between in range(before + 1, axis)
        )
        if before is not None and axis > before and follows:
            runs[-1].append(axis)
        else:
            runs.append([axis])
    order = sorted(range(len(runs)), key=lambda run: runs[run][0])
    lengths = merged(shape, [runs[run] for run in order])
    return lengths, tuple(order.index(run) for run in range(len(runs)))


def two_moves(
    shape: FlatShape, perm: tuple[int, ...], most: int
) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """A Transpose as two, each of which moves at most some axes once neighbours are merged."""
    if len(perm) > MOST_SEARCHED:
        return None
    for first in permutations(range(len(perm))):
        between = tuple(shape[axis] for axis in first)
        second = tuple(first.index(axis) for axis in perm)
        if all(len(moved_groups(*move)[0]) <= most for move in ((shape, first), (between, second))):
            return first, second
    return None
