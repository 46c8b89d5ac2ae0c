"""The algebra of orders, held against what numpy does with the same axes."""

from __future__ import annotations

from itertools import chain, combinations, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from relayout.layout.permutation import Permutation

MAX_RANK = 6

ROTATION, SWAP = Permutation.of(1, 2, 0), Permutation.of(1, 0, 2)
"""Two orders that do not commute."""


def of_rank(rank: int) -> st.SearchStrategy[Permutation]:
    return st.permutations(range(rank)).map(lambda axes: Permutation(tuple(axes)))


orders = st.integers(0, MAX_RANK).flatmap(of_rank)
pairs = st.integers(0, MAX_RANK).flatmap(lambda rank: st.tuples(of_rank(rank), of_rank(rank)))
triples = st.integers(0, MAX_RANK).flatmap(
    lambda rank: st.tuples(of_rank(rank), of_rank(rank), of_rank(rank))
)


@st.composite
def orders_and_axes(draw: st.DrawFn) -> tuple[Permutation, frozenset[int]]:
    order = draw(orders)
    axes = draw(st.frozensets(st.integers(0, order.rank - 1))) if order.rank else frozenset()
    return order, axes


def every_order(rank: int) -> list[Permutation]:
    return [Permutation(axes) for axes in permutations(range(rank))]


def tensor(rank: int) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    """Distinct numbers along axes of distinct lengths, the first of them the longest."""
    shape = tuple(range(rank + 1, 1, -1))
    return np.arange(np.prod(shape, dtype=int)).reshape(shape)


def transposed(
    x: np.ndarray[tuple[int, ...], np.dtype[np.int64]], order: Permutation
) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    return x.transpose(order.axes)


@pytest.mark.parametrize("axes", [(0, 0), (1, 2), (-1, 0), (0, 2), (0, 1, 1)])
def test_only_a_rearrangement_of_all_axes_is_a_permutation(axes: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="is not a permutation"):
        Permutation(axes)


def test_a_permutation_reads_like_its_axes() -> None:
    order = Permutation.of(2, 0, 1)
    assert (order.rank, len(order), list(order), order[0]) == (3, 3, [2, 0, 1], 2)
    assert str(order) == "201"
    assert order == Permutation((2, 0, 1))
    assert hash(order) == hash(Permutation((2, 0, 1)))
    assert str(Permutation.reversal(11)) == "10,9,8,7,6,5,4,3,2,1,0"


@pytest.mark.parametrize("rank", range(MAX_RANK + 1))
def test_only_the_identity_is_the_identity(rank: int) -> None:
    identity = Permutation.identity(rank)
    assert [order for order in every_order(rank) if order.is_identity] == [identity]


@pytest.mark.parametrize("rank", range(MAX_RANK + 1))
def test_the_reversal_is_a_transpose_without_axes(rank: int) -> None:
    x = tensor(rank)
    np.testing.assert_array_equal(transposed(x, Permutation.reversal(rank)), x.transpose())


def test_stored_axis_i_of_a_composition_is_p_of_q_of_i() -> None:
    assert ROTATION.then(SWAP) == Permutation.of(2, 1, 0)
    assert SWAP.then(ROTATION) == Permutation.of(0, 2, 1)


@given(pairs)
def test_then_is_one_transpose_after_the_other(pair: tuple[Permutation, Permutation]) -> None:
    first, second = pair
    x = tensor(first.rank)
    np.testing.assert_array_equal(
        transposed(x, first.then(second)), transposed(transposed(x, first), second)
    )


def test_orders_of_different_rank_do_not_compose() -> None:
    with pytest.raises(ValueError, match="do not compose"):
        SWAP.then(Permutation.identity(2))


@given(triples)
def test_composition_is_associative(triple: tuple[Permutation, Permutation, Permutation]) -> None:
    p, q, r = triple
    assert p.then(q).then(r) == p.then(q.then(r))


@given(orders)
def test_the_identity_changes_nothing(order: Permutation) -> None:
    identity = Permutation.identity(order.rank)
    assert order.then(identity) == order == identity.then(order)


@given(orders)
def test_the_inverse_undoes_on_both_sides(order: Permutation) -> None:
    assert order.then(order.inverse()).is_identity
    assert order.inverse().then(order).is_identity


@given(pairs)
def test_the_inverse_of_a_composition_is_reversed(pair: tuple[Permutation, Permutation]) -> None:
    p, q = pair
    assert p.then(q).inverse() == q.inverse().then(p.inverse())


def test_the_inverse_of_a_rotation_is_not_itself() -> None:
    assert ROTATION.inverse() == Permutation.of(2, 0, 1)


@given(orders)
def test_position_finds_an_axis_by_its_length(order: Permutation) -> None:
    x = tensor(order.rank)
    stored = transposed(x, order)
    for axis in range(-order.rank, order.rank):
        assert stored.shape[order.position(axis)] == x.shape[axis]


@pytest.mark.parametrize("axis", [3, -4])
def test_an_axis_out_of_range_has_no_position(axis: int) -> None:
    with pytest.raises(ValueError, match="there is no axis"):
        ROTATION.position(axis)


@given(orders)
def test_reorder_does_to_a_list_what_a_transpose_does_to_a_shape(order: Permutation) -> None:
    x = tensor(order.rank)
    assert order.reorder(x.shape) == transposed(x, order).shape


def test_reorder_takes_one_item_per_axis() -> None:
    assert ROTATION.reorder("abc") == ("b", "c", "a")
    with pytest.raises(ValueError, match="cannot be reordered"):
        ROTATION.reorder("ab")


@given(orders_and_axes())
def test_drop_is_the_order_of_the_sums(case: tuple[Permutation, frozenset[int]]) -> None:
    order, axes = case
    x = tensor(order.rank)
    stored = tuple(order.position(axis) for axis in sorted(axes))
    np.testing.assert_array_equal(
        transposed(x.sum(axis=tuple(sorted(axes))), order.drop(axes)),
        transposed(x, order).sum(axis=stored),
    )


@st.composite
def orders_and_new_places(draw: st.DrawFn) -> tuple[Permutation, tuple[int, ...]]:
    order = draw(st.integers(0, 4).flatmap(of_rank))
    count = draw(st.integers(0, 3))
    places = st.lists(
        st.integers(0, order.rank + count - 1), min_size=count, max_size=count, unique=True
    )
    return order, tuple(draw(places)) if count else ()


@given(orders_and_new_places())
def test_insert_is_the_order_after_new_axes(case: tuple[Permutation, tuple[int, ...]]) -> None:
    order, places = case
    x = tensor(order.rank)
    np.testing.assert_array_equal(
        transposed(np.expand_dims(x, places), order.insert(places)),
        np.expand_dims(transposed(x, order), places),
    )


@given(orders_and_new_places())
def test_drop_undoes_insert(case: tuple[Permutation, tuple[int, ...]]) -> None:
    order, places = case
    assert order.insert(places).drop(places) == order


@pytest.mark.parametrize("count", [0, 1, 2, 3])
@pytest.mark.parametrize("rank", range(1, 5))
def test_replace_is_the_order_when_an_axis_is_taken_at_indices(rank: int, count: int) -> None:
    x = tensor(rank)
    indices = np.arange(2**count).reshape((2,) * count) % 2
    for order in every_order(rank):
        for axis in range(rank):
            np.testing.assert_array_equal(
                transposed(x.take(indices, axis), order.replace(axis, count)),
                transposed(x, order).take(indices, order.position(axis)),
            )


@given(orders_and_axes())
def test_keeps_compares_sets_and_fixes_compares_places(
    case: tuple[Permutation, frozenset[int]],
) -> None:
    order, axes = case
    stored = {axis: order.position(axis) for axis in axes}
    assert order.keeps(axes) == (set(stored.values()) == axes)
    assert order.fixes(*axes) == all(axis == place for axis, place in stored.items())


def test_keeping_is_weaker_than_fixing() -> None:
    order = Permutation.of(0, 2, 1, 3)
    assert order.keeps({1, 2})
    assert not order.keeps({0, 1})
    assert order.fixes(0, 3)
    assert not order.fixes(1)
    assert order.keeps(())
    assert order.fixes()


@pytest.mark.parametrize("rank", range(MAX_RANK + 1))
def test_one_order_of_each_rank_from_two_on_swaps_the_last_two(rank: int) -> None:
    found = [order for order in every_order(rank) if order.swaps_last_two]
    if rank < 2:
        assert found == []
        return
    x = tensor(rank)
    (only,) = found
    np.testing.assert_array_equal(transposed(x, only), x.swapaxes(-1, -2))


@pytest.mark.parametrize(
    ("axes", "shape", "moves_nothing"),
    [
        ((0, 2, 3, 1), (2, 1, 4, 5), True),
        ((0, 2, 3, 1), (2, 3, 1, 1), True),
        ((0, 2, 3, 1), (2, 3, 1, 5), False),
        ((1, 0), (1, 1), True),
        ((1, 0), (0, 1), True),
        ((1, 0), (0, 3), False),
        ((1, 0), ("N", 1), True),
        ((1, 0), ("N", "N"), False),
        ((1, 0), (None, 1), True),
        ((1, 0), (None, 3), False),
        ((0, 1), (None, "N"), True),
        ((), (), True),
    ],
)
def test_only_axes_of_length_one_move_freely(
    axes: tuple[int, ...], shape: tuple[int | str | None, ...], moves_nothing: bool
) -> None:
    assert Permutation(axes).moves_only_unit_axes(shape) is moves_nothing


@pytest.mark.parametrize("rank", range(5))
def test_no_data_moves_exactly_when_a_reshape_does_the_same(rank: int) -> None:
    units = chain.from_iterable(combinations(range(rank), count) for count in range(rank + 1))
    for ones in units:
        shape = tuple(1 if axis in ones else axis + 2 for axis in range(rank))
        x = np.arange(np.prod(shape, dtype=int)).reshape(shape)
        for order in every_order(rank):
            stored = x.transpose(order.axes)
            same = np.array_equal(stored, x.reshape(stored.shape))
            assert order.moves_only_unit_axes(shape) == same
