"""Pieces against the indices that they count, as numpy has them."""

from __future__ import annotations

from itertools import product
from random import Random

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

from relayout.verify.proof.pieces import (
    FREE,
    Dim,
    Piece,
    coalesced,
    cut,
    distinct,
    extent,
    refined,
)
from relayout.verify.proof.table import TermTable
from relayout.verify.proof.views import exact, reshaped, transposed
from tests.verify.proof.cases import Array

STRIDES = (1, 2, 3, 4, 6, 12)
seeds = st.integers(0, 2**32)
pieces = st.builds(
    Piece, st.sampled_from((0, 1)), st.sampled_from(STRIDES), st.sampled_from((2, 3, 4, 6))
) | st.builds(Piece, st.just(FREE), st.just(0), st.sampled_from((2, 3)))
rows = st.lists(pieces, max_size=3)


def counted(dim: list[Piece] | Dim) -> list[tuple[tuple[int, int], ...]]:
    """For each place of a dimension, what its pieces add to the index of each base."""
    shape = [int(str(piece.extent)) for piece in dim]
    result = []
    for place in np.ndindex(*shape):
        sums: dict[int, int] = {}
        for digit, piece in zip(place, dim, strict=True):
            if piece.base != FREE:
                sums[piece.base] = sums.get(piece.base, 0) + digit * int(str(piece.stride))
        result.append(tuple(sorted(pair for pair in sums.items() if pair[1])))
    return result


def lengths_of(size: int, random: Random) -> list[int]:
    lengths = []
    while size > 1:
        lengths.append(random.choice([n for n in range(1, size + 1) if size % n == 0]))
        size //= lengths[-1]
    return lengths


@given(rows)
def test_coalesced_pieces_count_the_same(row: list[Piece]) -> None:
    assert counted(coalesced(row)) == counted(row)


@given(rows, seeds)
def test_groups_count_the_same(row: list[Piece], seed: int) -> None:
    lengths = lengths_of(int(str(extent(row))), Random(seed))
    groups = cut(row, lengths)
    assume(groups is not None)
    assert groups is not None
    assert [extent(group) for group in groups] == lengths
    assert counted([piece for group in groups for piece in group]) == counted(row)


@given(pieces, seeds)
def test_one_piece_can_be_cut_anywhere(piece: Piece, seed: int) -> None:
    lengths = lengths_of(int(str(piece.extent)), Random(seed))
    groups = cut([piece], lengths)
    assert groups is not None
    assert coalesced([one for group in groups for one in group]) == (piece,)


@given(rows, rows, seeds)
def test_refined_rows_count_the_same(one: list[Piece], more: list[Piece], seed: int) -> None:
    """The other row has the same digits in another order, each of any base and stride."""
    extents = [piece.extent for piece in one]
    Random(seed).shuffle(extents)
    likes = [*more, *one]
    other = [piece._replace(extent=n) for piece, n in zip(likes, extents, strict=False)]
    parts = refined([one, other])
    if parts is None:
        return
    assert all(left.extent == right.extent for left, right in parts)
    assert counted([left for left, _ in parts]) == counted(one)
    assert counted([right for _, right in parts]) == counted(other)


@given(rows)
def test_distinct_pieces_count_no_index_twice(row: list[Piece]) -> None:
    kept = [piece for piece in row if piece.base != FREE]
    assume(distinct(kept))
    found = counted(kept)
    assert len(set(found)) == len(found)


def test_the_same_digits_twice_are_not_distinct() -> None:
    assert not distinct([Piece(0, 1, 3), Piece(0, 1, 3)])
    assert not distinct([Piece(0, 2, 3), Piece(0, 1, 4)])
    assert distinct([Piece(0, 4, 3), Piece(0, 1, 4)])
    assert distinct([Piece(FREE, 0, 3), Piece(FREE, 0, 3)])


def _moved(table: TermTable, seed: int, start: tuple[int, ...]) -> tuple[object, Array]:
    """A chain of views, as a value and as an array of the numbers of its elements."""
    random = Random(seed)
    value = table.opaque(("x",), start)
    array: Array = np.arange(np.prod(start)).reshape(start)
    for _ in range(random.randint(0, 5)):
        if random.random() < 0.5:
            perm = list(range(array.ndim))
            random.shuffle(perm)
            value, array = transposed(value, perm), array.transpose(perm)
        else:
            lengths = lengths_of(array.size, random)
            value, array = reshaped(table, value, lengths), array.reshape(lengths)
        assert value.shape == array.shape
    return exact(table, value), array


@given(seeds, seeds, st.sampled_from([(12,), (2, 6), (2, 2, 3), (4, 4), (2, 2, 2, 2)]))
def test_equal_chains_of_views_are_equal_arrays(
    one: int, other: int, start: tuple[int, ...]
) -> None:
    table = TermTable()
    (left, array), (right, second) = (_moved(table, seed, start) for seed in (one, other))
    if left == right:
        np.testing.assert_array_equal(array, second)


@given(seeds, st.sampled_from([(12,), (2, 6), (2, 2, 3), (4, 4), (2, 2, 2, 2)]))
def test_chains_that_can_be_cut_are_equal_if_their_arrays_are(
    seed: int, start: tuple[int, ...]
) -> None:
    """Digits of one prime each, moved and then merged: no border ever falls into a piece."""
    table, random = TermTable(), Random(seed)
    digits = [n for length in start for n in _primes(length)]
    value = reshaped(table, table.opaque(("x",), start), digits)
    numbers: Array = np.arange(np.prod(start)).reshape(digits)
    made = []
    for _ in range(6):
        perm = list(range(len(digits)))
        random.shuffle(perm)
        array = numbers.transpose(perm)
        wanted = [array.shape[0], array.size // array.shape[0]]
        moved = reshaped(table, transposed(value, perm), wanted)
        made.append((exact(table, moved), array.reshape(wanted)))
    for (left, array), (right, second) in product(made, made):
        assert (left == right) == np.array_equal(array, second)


def _primes(number: int) -> list[int]:
    for prime in (2, 3):
        if number % prime == 0 and number > prime:
            return [*_primes(number // prime), prime]
    return [number]
