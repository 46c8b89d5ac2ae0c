"""What a Transpose has to do in memory."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from relayout.layout.move_class import MoveClass
from relayout.layout.moves import Move
from relayout.layout.permutation import Permutation

CLASSES = [
    ((1, 8, 1, 4), (2, 1, 0, 3), MoveClass.NONE),
    ((2, 8, 3, 4), (0, 2, 1, 3), MoveClass.ROWS),
    ((2, 8, 3, 4), (0, 1, 3, 2), MoveClass.MATRIX),
    ((2, 8, 3, 4), (0, 3, 1, 2), MoveClass.MATRIX),
    ((2, 8, 3, 4), (0, 2, 3, 1), MoveClass.MATRIX),
    ((2, 8, 3, 4), (0, 3, 2, 1), MoveClass.SCATTER),
    ((2, 8, 1, 4), (0, 3, 2, 1), MoveClass.MATRIX),
    ((5, 8, 3), (2, 1, 0), MoveClass.SCATTER),
    ((5, 8, 2, 3), (0, 3, 2, 1), MoveClass.SCATTER),
    ((5, 8, 2, 3), (3, 0, 1, 2), MoveClass.MATRIX),
    ((5, 8, 2, 3), (1, 2, 0, 3), MoveClass.ROWS),
]


@pytest.mark.parametrize(("lengths", "axes", "kind"), CLASSES)
def test_classes(lengths: tuple[int, ...], axes: tuple[int, ...], kind: MoveClass) -> None:
    assert Move.of(lengths, Permutation(axes)).kind is kind


def test_axes_that_stay_side_by_side_are_one() -> None:
    move = Move.of((2, 3, 1, 5, 7), Permutation.of(3, 4, 0, 2, 1))
    assert (move.lengths, move.order.axes) == ((6, 35), (1, 0))
    assert Move.of((2, 3, 4), Permutation.of(1, 0, 2)).run == 4


@pytest.mark.parametrize("axes", list(permutations(range(4))))
def test_a_move_is_the_transpose_it_came_from(axes: tuple[int, ...]) -> None:
    lengths = (2, 3, 1, 5)
    data = np.arange(30)
    expected = data.reshape(lengths).transpose(axes).ravel()
    move = Move.of(lengths, Permutation(axes))
    assert np.array_equal(_moved(data, move), expected)
    for first, second in map(move.halves, move.first_steps()):
        assert np.array_equal(_moved(_moved(data, first), second), expected)


def _moved(data: np.ndarray, move: Move) -> np.ndarray:
    return data.reshape(move.lengths).transpose(move.order.axes).ravel()


@pytest.mark.parametrize(
    ("lengths", "axes", "is_hindered"),
    [
        ((64, 49, 1, 96), (2, 0, 3, 1), True),
        ((1, 64, 49, 96), (1, 3, 2, 0), True),
        ((64, 49, 96, 1), (0, 2, 1, 3), False),
        ((64, 1, 49, 96), (0, 3, 1, 2), False),
        ((64, 49, 1, 3, 32), (2, 0, 3, 1, 4), False),
        ((64, 1, 49), (1, 0, 2), False),
        ((8, 7, 6, 5), (3, 2, 1, 0), False),
    ],
)
def test_unit_axes_hinder_moves_that_would_be_simple(
    lengths: tuple[int, ...], axes: tuple[int, ...], is_hindered: bool
) -> None:
    assert Move.of(lengths, Permutation(axes)).is_hindered is is_hindered
