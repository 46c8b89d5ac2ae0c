"""When a convolution is done with fewer multiplications."""

from __future__ import annotations

from dataclasses import replace

import pytest

pytest.importorskip("torch")

from relayout.targets.torch.kernels.fewer import prefers_fewer
from relayout.targets.torch.kernels.plan import can_build
from relayout.targets.torch.kernels.prices import Prices
from relayout.targets.torch.kernels.window import Sliding, pointwise

LARGE = pointwise((1, 96, 8, 8), 96)
PADDED = Sliding((1, 8, 5, 7), (1, 16, 5, 7), (3, 3), (1, 1), (1, 1, 1, 1), (1, 1), 1)
STRIDED = replace(LARGE, source=(1, 96, 15, 16), strides=(2, 2))


@pytest.mark.skipif(not can_build(), reason="there is no compiler")
@pytest.mark.parametrize(
    ("window", "other"), [(LARGE, "strassen"), (PADDED, "winograd"), (STRIDED, "strassen")]
)
def test_both_ways_are_timed_once(window: Sliding, other: str) -> None:
    prices = Prices("here")
    first = prefers_fewer(window, prices)
    (known,) = prices.seconds.values()
    assert set(known) == {"direct", other}
    assert all(seconds > 0 for seconds in known.values())
    before = dict(known)
    assert prefers_fewer(window, prices) == first
    assert known == before


@pytest.mark.parametrize(("seconds", "preferred"), [(0.9, True), (0.99, False), (1.1, False)])
def test_the_plain_way_stays_unless_the_other_is_clearly_faster(
    seconds: float, preferred: bool
) -> None:
    key = "native 1x96x8x8->96 1x1 by 1x1 p(0, 0, 0, 0)"
    prices = Prices("here", {key: {"direct": 1.0, "strassen": seconds}})
    assert prefers_fewer(LARGE, prices) is preferred
    assert list(prices.seconds) == [key]


def test_small_products_have_one_way() -> None:
    prices = Prices("here")
    assert not prefers_fewer(pointwise((1, 16, 8, 8), 96), prices)
    assert not prices.seconds
