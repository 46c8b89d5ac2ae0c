import math
import random

import pytest

from relayout.timing.ratio import PairedRatio


def test_equal_times_are_neither_faster_nor_slower() -> None:
    ratio = PairedRatio.of([1.0] * 12, [1.0] * 12)
    assert (ratio.median, ratio.low, ratio.high) == (1.0, 1.0, 1.0)
    assert not ratio.is_faster
    assert not ratio.is_slower
    assert ratio.is_settled


def test_half_the_time_is_twice_as_fast() -> None:
    ratio = PairedRatio.of([2.0] * 12, [1.0] * 12)
    assert ratio.median == 2.0
    assert ratio.is_clearly_faster
    assert ratio.is_settled


def test_five_pairs_say_nothing() -> None:
    """All five above 1 happen by chance once in 16 times, counting both sides."""
    ratio = PairedRatio.of([2.0] * 5, [1.0] * 5)
    assert (ratio.low, ratio.high) == (0.0, math.inf)
    assert not ratio.is_faster
    assert PairedRatio.of([2.0] * 6, [1.0] * 6).is_faster


def test_ratios_are_taken_pair_by_pair() -> None:
    """A machine that is half as fast for a while changes both times of a pair."""
    given = [1.0, 2.0] * 10
    made = [0.5, 1.0] * 10
    assert PairedRatio.of(given, made).high == 2.0


@pytest.mark.parametrize("count", [8, 25, 60])
def test_the_interval_holds_the_median_nineteen_times_of_twenty(count: int) -> None:
    source = random.Random(count)
    held = 0
    for _ in range(400):
        given = [source.lognormvariate(0, 0.3) for _ in range(count)]
        ratio = PairedRatio.of(given, [1.0] * count)
        held += ratio.low <= 1 <= ratio.high
    assert held >= 0.93 * 400
