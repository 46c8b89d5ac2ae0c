"""When a convolution is done with fewer multiplications."""

from __future__ import annotations

from dataclasses import replace

import pytest

pytest.importorskip("torch")

from relayout.backends.torch.providers.library_group import Activation, Curve
from relayout.backends.torch.providers.native_algorithm import (
    KindTimer,
    build_mark,
    fastest_kind,
    price_key,
)
from relayout.backends.torch.providers.native_interface import KernelKind
from relayout.backends.torch.providers.native_steps import kinds_of
from relayout.backends.torch.providers.prices import Price, Prices
from relayout.backends.torch.providers.window import Sliding, pointwise
from tests.backends.torch.building import can_build

LARGE = pointwise((1, 96, 8, 8), 96)
PADDED = Sliding((1, 8, 5, 7), (1, 16, 5, 7), (3, 3), (1, 1), (1, 1, 1, 1), (1, 1), 1)
STRIDED = replace(LARGE, source=(1, 96, 15, 16), strides=(2, 2))


@pytest.mark.skipif(not can_build(), reason="there is no compiler")
@pytest.mark.parametrize(
    ("window", "others"),
    [(LARGE, {"strassen"}), (PADDED, {"winograd", "small_winograd"}), (STRIDED, {"strassen"})],
)
def test_all_ways_are_timed_once(window: Sliding, others: set[str]) -> None:
    prices = Prices("here")
    first = fastest(window, prices)
    (known,) = prices.known.values()
    assert set(known) == {"convolution"} | others
    assert all(price.seconds > 0 for price in known.values())
    before = dict(known)
    assert fastest(window, prices) == first
    assert known == before


def fastest(window: Sliding, prices: Prices, timer: KindTimer | None = None) -> KernelKind:
    return fastest_kind(prices, window, kinds_of(window, Activation()), timer)


def known_prices(key: str, **seconds: float) -> Prices:
    return Prices("here", {key: {name: Price(each) for name, each in seconds.items()}})


@pytest.mark.parametrize(
    ("seconds", "preferred"),
    [(0.9, KernelKind.STRASSEN), (0.99, KernelKind.CONVOLUTION), (1.1, KernelKind.CONVOLUTION)],
)
def test_the_plain_way_stays_unless_another_is_clearly_faster(
    seconds: float, preferred: KernelKind
) -> None:
    key = price_key(LARGE)
    prices = known_prices(key, convolution=1.0, strassen=seconds)
    assert fastest(LARGE, prices) == preferred
    assert list(prices.known) == [key]


@pytest.mark.parametrize(
    ("large", "small", "preferred"),
    [
        (0.8, 0.7, KernelKind.SMALL_WINOGRAD),
        (0.7, 0.8, KernelKind.WINOGRAD),
        (0.99, 0.9, KernelKind.SMALL_WINOGRAD),
        (0.99, 0.99, KernelKind.CONVOLUTION),
    ],
)
def test_the_fastest_of_three_ways_is_taken(
    large: float, small: float, preferred: KernelKind
) -> None:
    key = price_key(PADDED)
    prices = known_prices(key, convolution=1.0, winograd=large, small_winograd=small)
    assert fastest(PADDED, prices) == preferred
    assert list(prices.known) == [key]


def test_a_way_that_was_never_timed_has_all_timed_again() -> None:
    if not can_build():
        pytest.skip("there is no compiler")
    key = price_key(PADDED)
    prices = known_prices(key, convolution=1e9, winograd=1e9)
    fastest(PADDED, prices)
    assert set(prices.seconds(key)) == {"convolution", "winograd", "small_winograd"}
    assert max(prices.seconds(key).values()) < 1e9


def test_times_of_other_versions_of_the_kernels_count_for_nothing() -> None:
    before = price_key(LARGE).replace(build_mark(), "another")
    prices = known_prices(before, convolution=0.5, strassen=1.0)
    timer: KindTimer = lambda _window, _kinds: [Price(1.0), Price(0.5)]  # noqa: E731
    assert fastest(LARGE, prices, timer) == KernelKind.STRASSEN
    assert set(prices.known) == {before, price_key(LARGE)}


def test_gelu_leaves_the_plain_way() -> None:
    assert kinds_of(PADDED, Activation(curve=Curve.GELU)) == [KernelKind.CONVOLUTION]
    assert kinds_of(PADDED, Activation()) == [
        KernelKind.CONVOLUTION,
        KernelKind.WINOGRAD,
        KernelKind.SMALL_WINOGRAD,
    ]


def test_small_products_have_one_way() -> None:
    prices = Prices("here")
    assert fastest(pointwise((1, 16, 8, 8), 96), prices) == KernelKind.CONVOLUTION
    assert not prices.known
