"""Reshapes: which axes belong together, which orders pass, and the target shape they need."""

from __future__ import annotations

from itertools import permutations
from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from relayout.layout.blocks import UNIT, Block, Reshaping, Size, product, sizes_of
from relayout.layout.permutation import Permutation

Shape = tuple[int | str | None, ...]

LENGTHS = {"N": 2, "S": 7, "T": 5}
"""What the symbols of the tests are at run time."""


def reshaping(source: Shape, *target: int) -> Reshaping:
    return Reshaping.to_target(sizes_of(source, "source"), target)


def between(source: Shape, result: Shape) -> Reshaping:
    return Reshaping(sizes_of(source, "source"), sizes_of(result, "result"))


def wide(given: Reshaping) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    return [(block.source, block.result) for block in given.blocks if not block.is_unit]


def unit_axes(given: Reshaping) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    return [(block.source, block.result) for block in given.blocks if block.is_unit]


def run(x: np.ndarray, target: tuple[int, ...]) -> np.ndarray:
    """Reshape as ONNX defines it."""
    return x.reshape([x.shape[axis] if entry == 0 else entry for axis, entry in enumerate(target)])


def assert_law(given: Reshaping, x: np.ndarray, y: np.ndarray, order: Permutation) -> bool:
    """Whether the order passes; if it does, the restated reshape must give the permuted result."""
    carried = given.carry(order)
    if isinstance(carried, Block):
        return False
    target = given.target(order, carried)
    if target is None:
        return False
    got = run(np.ascontiguousarray(x.transpose(order.axes)), target)
    np.testing.assert_array_equal(got, y.transpose(carried.axes))
    return True


def orders(rank: int) -> list[Permutation]:
    return [Permutation(axes) for axes in permutations(range(rank))]


# sizes


def test_a_quotient_takes_numbers_and_symbols_apart() -> None:
    six_n_s = product(sizes_of((6, "N", "S"), "source"))
    assert six_n_s.over(product(sizes_of(("S", 2), "source"))) == Size(3, (("named", "N"),))
    assert six_n_s.over(Size(4)) is None
    assert six_n_s.over(product(sizes_of(("N", "N"), "source"))) is None
    assert six_n_s.over(Size(0)) is None


def test_unknown_lengths_are_equal_only_to_themselves() -> None:
    first, second = sizes_of((None, None), "source")
    assert first != second
    assert first != sizes_of((None,), "result")[0]
    assert sizes_of(("", None), "source") == (first, second)


# blocks


@pytest.mark.parametrize(
    ("source", "result", "blocks"),
    [
        ((2, 3, 4, 5), (2, 12, 5), [((0,), (0,)), ((1, 2), (1,)), ((3,), (2,))]),
        ((2, 12, 5), (2, 3, 4, 5), [((0,), (0,)), ((1,), (1, 2)), ((2,), (3,))]),
        ((4, 6), (6, 4), [((0, 1), (0, 1))]),
        ((2, 6, 10), (2, 4, 15), [((0,), (0,)), ((1, 2), (1, 2))]),
        (("N", 3, 4), ("N", 12), [((0,), (0,)), ((1, 2), (1,))]),
        (("N", "S", 6), ("N", "S", 2, 3), [((0,), (0,)), ((1,), (1,)), ((2,), (2, 3))]),
        (("N", 6), ("M", 6), [((0,), (0,)), ((1,), (1,))]),
        ((None, 4, 6), (None, 24), [((0,), (0,)), ((1, 2), (1,))]),
        ((None, None, 6), (None, None, 6), [((0, 1), (0, 1)), ((2,), (2,))]),
        (("N", "S"), ("S", "N"), [((0, 1), (0, 1))]),
    ],
)
def test_blocks_are_the_smallest_that_can_be_proved(
    source: Shape, result: Shape, blocks: list[tuple[tuple[int, ...], tuple[int, ...]]]
) -> None:
    assert wide(between(source, result)) == blocks


def test_axes_of_length_one_are_blocks_of_their_own() -> None:
    given = between((1, 2, 1, 3), (2, 1, 1, 3))
    assert wide(given) == [((1,), (0,)), ((3,), (3,))]
    assert unit_axes(given) == [((2,), (1,)), ((), (2,)), ((0,), ())]


# target shapes


def test_a_copied_length_is_the_length_at_that_place() -> None:
    assert reshaping(("N", None, 6), 0, 0, 2, 3).result[:2] == sizes_of(("N", None), "source")


def test_the_rest_is_what_the_other_entries_leave() -> None:
    assert reshaping(("N", 4, 6), 0, -1).result[1] == Size(24)
    assert reshaping(("N", "S", 6), -1, 6).result[0] == product(sizes_of(("N", "S"), "source"))


def test_an_unknown_rest_does_not_keep_what_follows_from_being_aligned() -> None:
    given = reshaping(("N", 10, 4), -1, 5, 4)
    assert wide(given) == [((0, 1), (0, 1)), ((2,), (2,))]


# orders


def test_an_order_passes_where_merged_axes_stay_together() -> None:
    merge = reshaping((2, 3, 4, 5), 2, 12, 5)
    assert merge.carry(Permutation.of(3, 1, 2, 0)) == Permutation.of(2, 1, 0)
    assert merge.carry(Permutation.of(0, 2, 3, 1)) == Block((1, 2), (1,))
    assert merge.carry(Permutation.of(0, 2, 1, 3)) == Block((1, 2), (1,))


def test_axes_of_length_one_may_lie_between_merged_axes() -> None:
    merge = reshaping((2, 3, 4, 1), 2, 12)
    assert merge.carry(Permutation.of(1, 3, 2, 0)) == Permutation.of(1, 0)


def test_a_new_axis_of_length_one_follows_its_neighbour() -> None:
    assert reshaping((2, 3, 4), 2, 3, 1, 4).carry(Permutation.of(2, 1, 0)) == Permutation.of(
        3, 1, 2, 0
    )


def test_a_target_names_unknown_lengths_by_copying_or_as_the_rest() -> None:
    split = reshaping(("N", "S", 6), 0, 0, 2, 3)
    assert split.target(Permutation.of(1, 0, 2), Permutation.of(1, 0, 2, 3)) == (0, 0, 2, 3)
    assert split.target(Permutation.of(2, 0, 1), Permutation.of(2, 3, 0, 1)) is None
    merge = reshaping(("N", 2, 3), 0, -1)
    assert merge.target(Permutation.of(1, 2, 0), Permutation.of(1, 0)) == (6, -1)


def test_the_rest_is_not_asked_for_beside_a_length_that_may_be_zero() -> None:
    given = between(("N", 4, "S"), ("N", 2, 2, "S"))
    order = Permutation.of(0, 2, 1)
    assert given.target(order, Permutation.of(0, 3, 1, 2)) == (0, 0, 2, 2)
    moved = Permutation.of(0, 1, 2)
    assert given.target(moved, Permutation.of(0, 1, 2, 3)) is None
    divided = reshaping(("N", 4, "S"), 0, 2, 2, -1)
    assert divided.target(moved, Permutation.of(0, 1, 2, 3)) == (0, 2, 2, -1)


# the law


@st.composite
def reshapes(draw: st.DrawFn) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Two groupings of the same factors, with axes of length 1 strewn in."""
    factors = draw(st.lists(st.sampled_from([2, 3, 4]), min_size=1, max_size=5))

    def grouped() -> tuple[int, ...]:
        shape, run_of = [], []
        for factor in factors:
            run_of.append(factor)
            if draw(st.booleans()):
                shape.append(prod(run_of))
                run_of = []
        shape += [prod(run_of)] if run_of else []
        for _ in range(draw(st.integers(0, 2))):
            shape.insert(draw(st.integers(0, len(shape))), 1)
        return tuple(shape[:5]) if prod(shape[:5]) == prod(factors) else (prod(factors),)

    return grouped(), grouped()


@given(reshapes(), st.data())
def test_every_admitted_order_is_right_and_can_be_pulled_back(
    shapes: tuple[tuple[int, ...], tuple[int, ...]], data: st.DataObject
) -> None:
    source, result = shapes
    x = np.arange(prod(source)).reshape(source)
    order = data.draw(st.sampled_from(orders(len(source))))
    assert_law(between(source, result), x, x.reshape(result), order)
    wanted = data.draw(st.sampled_from(orders(len(result))))
    lead = between(source, result).pull(wanted)
    if isinstance(lead, Permutation):
        carried = between(source, result).carry(lead)
        assert isinstance(carried, Permutation)
        assert carried.settled(result) == wanted.settled(result)


@pytest.mark.parametrize(
    ("source", "target", "admitted"),
    [
        (("N", "S", 6), (0, 0, 2, 3), 2),
        (("N", 12, "S"), (0, 3, 4, -1), 3),
        (("N", "S", "T", 6), (0, -1, 6), 3),
        (("N", "S", 4, 6), (-1, 4, 6), 6),
        (("N", 1, "S", 6), (0, -1, 1, 6), 16),
        (("N", None, 6), (0, -1), 1),
    ],
)
def test_symbols_are_carried_right(source: Shape, target: tuple[int, ...], admitted: int) -> None:
    shape = [dim if isinstance(dim, int) else LENGTHS.get(dim or "", 3) for dim in source]
    x = np.arange(prod(shape)).reshape(shape)
    given = reshaping(source, *target)
    passed = [assert_law(given, x, run(x, target), order) for order in orders(len(source))]
    assert sum(passed) == admitted


def test_pulling_a_torn_block_names_it() -> None:
    split = reshaping((2, 12), 2, 3, 4)
    assert split.pull(Permutation.of(1, 0, 2)) == Block((1,), (1, 2))
    assert split.pull(Permutation.of(1, 2, 0)) == Permutation.of(1, 0)


def test_an_axis_of_length_one_that_is_stored_elsewhere_can_be_pulled() -> None:
    """It may be anywhere: a Reshape puts it where it is needed."""
    assert reshaping((2, 3), 2, 3, 1).pull(Permutation.of(2, 0, 1)) == Permutation.of(0, 1)
    merge = reshaping((1, 8, 1, 1, 3, 33), 1, 24, 1, 33)
    assert merge.pull(Permutation.of(0, 2, 3, 1)) == Permutation.of(0, 5, 1, 2, 3, 4)


def test_a_unit_is_the_empty_product() -> None:
    assert product(()) == UNIT
