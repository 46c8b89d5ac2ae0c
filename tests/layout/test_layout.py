"""Named layouts: their classes, and the orders between them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from relayout.layout import layout as named
from relayout.layout.layout import (
    HWIO,
    HWOI,
    IOHW,
    NCDHW,
    NCHW,
    NCW,
    NDHWC,
    NHWC,
    NWC,
    OHWI,
    OIHW,
    Layout,
    LayoutClass,
    channels_first,
    channels_last,
    plain_class,
)
from relayout.layout.permutation import Permutation

NAMED = sorted(value.axes for value in vars(named).values() if isinstance(value, Layout))


@st.composite
def layout_pairs(draw: st.DrawFn) -> tuple[Layout, Layout]:
    """Two layouts of the same axes."""
    axes = draw(st.lists(st.sampled_from("NCDHWOIABX"), unique=True, max_size=6))
    return Layout("".join(axes)), Layout("".join(draw(st.permutations(axes))))


@pytest.mark.parametrize(
    ("given_layout", "wanted", "axes"),
    [
        (NCHW, NHWC, (0, 2, 3, 1)),
        (NHWC, NCHW, (0, 3, 1, 2)),
        (NCW, NWC, (0, 2, 1)),
        (NCDHW, NDHWC, (0, 2, 3, 4, 1)),
        (OIHW, HWIO, (2, 3, 1, 0)),
        (OIHW, OHWI, (0, 2, 3, 1)),
        (OIHW, HWOI, (2, 3, 0, 1)),
        (IOHW, OIHW, (1, 0, 2, 3)),
    ],
)
def test_the_order_between_two_layouts(
    given_layout: Layout, wanted: Layout, axes: tuple[int, ...]
) -> None:
    assert given_layout.to(wanted) == Permutation(axes)


def test_the_order_is_the_perm_of_a_transpose() -> None:
    x = np.zeros((2, 3, 4, 5))
    lengths = dict(zip("NCHW", x.shape, strict=True))
    stored = x.transpose(NCHW.to(NHWC).axes)
    assert stored.shape == tuple(lengths[axis] for axis in "NHWC")


def test_oihw_to_hwoi_is_its_own_inverse_and_nchw_to_nhwc_is_not() -> None:
    weight, feature = OIHW.to(HWOI), NCHW.to(NHWC)
    assert weight.inverse() == weight
    assert feature.inverse() != feature


@given(layout_pairs())
def test_to_leads_to_the_layout_it_names(pair: tuple[Layout, Layout]) -> None:
    first, second = pair
    assert first.stored(first.to(second)) == second
    assert first.to(second).inverse() == second.to(first)
    assert first.to(first).is_identity


def test_layouts_of_other_axes_have_no_order_between_them() -> None:
    with pytest.raises(ValueError, match="do not name the same axes"):
        NCHW.to(OIHW)
    with pytest.raises(ValueError, match="do not name the same axes"):
        NCHW.to(NCW)


def test_an_axis_is_named_once() -> None:
    with pytest.raises(ValueError, match="names an axis twice"):
        Layout("NCHH")


def test_an_order_of_another_rank_does_not_store_a_layout() -> None:
    with pytest.raises(ValueError, match="cannot be reordered"):
        NCHW.stored(Permutation.of(0, 2, 1))


def test_a_layout_reads_like_its_axes() -> None:
    assert (str(NHWC), NHWC.rank, NHWC.position("C")) == ("NHWC", 4, 3)
    with pytest.raises(ValueError, match="substring not found"):
        NHWC.position("D")


@pytest.mark.parametrize("axes", NAMED)
def test_a_named_layout_is_a_feature_or_a_weight_by_its_letters(axes: str) -> None:
    wanted = LayoutClass.FEATURE if "N" in axes else LayoutClass.WEIGHT
    assert Layout(axes).layout_class is wanted


@pytest.mark.parametrize("axes", ["", "HW", "NHW", "NCOI", "NCX", "OHW", "NOHW", "ABCD"])
def test_other_letters_have_no_class(axes: str) -> None:
    assert Layout(axes).layout_class is None


@pytest.mark.parametrize(
    ("rank", "first", "last"),
    [(2, "NC", "NC"), (3, "NCW", "NWC"), (4, "NCHW", "NHWC"), (5, "NCDHW", "NDHWC")],
)
def test_the_channels_come_first_or_last(rank: int, first: str, last: str) -> None:
    assert channels_first(rank) == Layout(first)
    assert channels_last(rank) == Layout(last)


@pytest.mark.parametrize("rank", [0, 1, 6])
def test_other_ranks_have_no_feature_layout(rank: int) -> None:
    with pytest.raises(ValueError, match=f"rank {rank}"):
        channels_first(rank)
    with pytest.raises(ValueError, match=f"rank {rank}"):
        channels_last(rank)


@pytest.mark.parametrize("rank", range(8))
def test_a_plain_tensor_of_some_ranks_has_a_batch_unless_it_leads_with_one(rank: int) -> None:
    batched = LayoutClass.NTENSOR if rank in {3, 4, 5, 6} else LayoutClass.TENSOR
    assert plain_class(rank, 1) is LayoutClass.TENSOR
    for leading in (0, 2, "batch", None):
        assert plain_class(rank, leading) is batched


def test_the_four_classes_are_shown_by_these_names() -> None:
    assert [kind.value for kind in LayoutClass] == ["Feature", "Weight", "Tensor", "NTensor"]
