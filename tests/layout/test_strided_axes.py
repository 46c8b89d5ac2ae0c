"""Atomic axes: cut by divisibility, joined where they touch."""

from __future__ import annotations

from itertools import product as pairs

import pytest

from relayout.layout.blocks import UNIT, Size, product, sizes_of
from relayout.layout.strided_axes import StridedAxis, cut_into, in_source_order, joined

N, S = sizes_of(("N", "S"), "source")


def mode(size: int | Size, stride: int | Size) -> StridedAxis:
    return StridedAxis(_size(size), _size(stride))


def _size(given: int | Size) -> Size:
    return Size(given) if isinstance(given, int) else given


def offsets(modes: list[StridedAxis]) -> list[int]:
    """Where the elements of numeric axes lie in the source."""
    steps = [range(m.size.number) for m in modes]
    return [
        sum(digit * m.stride.number for digit, m in zip(digits, modes, strict=True))
        for digits in pairs(*steps)
    ]


def test_a_cut_keeps_every_element_in_its_place() -> None:
    whole = mode(12, 5)
    parts = whole.cut(Size(3))
    assert parts == (mode(3, 20), mode(4, 5))
    assert offsets(list(parts)) == offsets([whole])


@pytest.mark.parametrize("outer", [5, 24, 0])
def test_what_is_not_a_divisor_cuts_nothing(outer: int) -> None:
    assert mode(12, 1).cut(Size(outer)) is None


def test_a_symbol_is_divided_by_itself_only() -> None:
    assert mode(N * S * Size(6), 1).cut(N * Size(2)) == (
        mode(N * Size(2), S * Size(3)),
        mode(S * Size(3), 1),
    )
    assert mode(N, 1).cut(S) is None
    assert mode(N, 1).cut(Size(2)) is None
    assert mode(6, 1).cut(N) is None


def test_axes_that_touch_are_one() -> None:
    assert joined([mode(3, 20), mode(4, 5)]) == (mode(12, 5),)
    assert joined([mode(4, 5), mode(3, 20)]) == (mode(4, 5), mode(3, 20))
    assert joined([mode(N, S), mode(S, 1)]) == (mode(N * S, 1),)
    assert joined([mode(N, S), mode(N, 1)]) == (mode(N, S), mode(N, 1))


def test_three_axes_that_touch_are_one() -> None:
    assert joined([mode(2, 12), mode(3, 4), mode(4, 1)]) == (mode(24, 1),)


def test_an_axis_of_length_one_is_none_but_a_symbol_is_one() -> None:
    assert joined([mode(1, 7), mode(4, 5), mode(UNIT, 3)]) == (mode(4, 5),)
    assert joined([mode(N, 5)]) == (mode(N, 5),)


def test_pieces_take_whole_axes_and_parts_of_axes() -> None:
    modes = [mode(4, 6), mode(6, 1)]
    assert cut_into(modes, [Size(2), Size(4), Size(3)]) == [
        [mode(2, 12)],
        [mode(2, 6), mode(2, 3)],
        [mode(3, 1)],
    ]


def test_a_border_between_divisors_cannot_be_cut() -> None:
    assert cut_into([mode(4, 1), mode(3, 4)], [Size(6), Size(2)]) is None
    assert cut_into([mode(N, 1), mode(S, N)], [S, N]) is None


def test_no_more_can_be_taken_than_there_is() -> None:
    assert cut_into([mode(4, 1)], [Size(4), Size(2)]) is None
    assert cut_into([mode(4, 1)], [Size(8)]) is None


def test_axes_lie_in_the_source_by_their_strides() -> None:
    inner, middle, outer = mode(3, 1), mode(N, 3), mode(4, N * Size(3))
    assert in_source_order([middle, inner, outer]) == [outer, middle, inner]
    assert product([m.size for m in (outer, middle, inner)]) == outer.span


def test_an_axis_contains_its_parts() -> None:
    whole = mode(N * Size(12), 5)
    outer, inner = whole.cut(N * Size(3)) or (whole, whole)
    assert whole.contains(outer)
    assert whole.contains(inner)
    assert not outer.contains(inner)
    assert not inner.contains(outer)
