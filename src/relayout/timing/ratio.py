"""Ratios of pairs of times: the median, and the interval that holds it with 95 % confidence.

The interval is between two of the ratios in order, by the binomial distribution of how many lie
below the median: it assumes nothing about how times are distributed.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

CONFIDENCE = 0.95
MARGIN = 0.02
"""A difference above this is one that counts."""
NARROW = 0.01
"""An interval as wide as this decides nothing more if it gets narrower."""


@dataclass(frozen=True, slots=True)
class PairedRatio:
    """How many times as fast one is as another."""

    median: float
    low: float
    high: float
    pairs: int

    @classmethod
    def of(cls, slow: Sequence[float], fast: Sequence[float]) -> PairedRatio:
        """From times that were taken in turns, of which each pair is compared by itself."""
        ratios = sorted(one / other for one, other in zip(slow, fast, strict=True))
        low, high = _interval(ratios)
        return cls(statistics.median(ratios), low, high, len(ratios))

    @property
    def is_faster(self) -> bool:
        return self.low > 1

    @property
    def is_clearly_faster(self) -> bool:
        """Whether it is faster by more than the clock of a busy machine may pretend."""
        return self.low > 1 + MARGIN

    @property
    def is_slower(self) -> bool:
        return self.high < 1

    @property
    def is_settled(self) -> bool:
        """Whether more pairs would decide nothing: it differs, or is known well enough."""
        is_outside = self.is_clearly_faster or self.high < 1 - MARGIN
        return is_outside or self.high - self.low < NARROW


def _interval(ratios: Sequence[float]) -> tuple[float, float]:
    """Of ratios in order: those between which the median is; unbounded if they are too few."""
    left_out = _left_out(len(ratios))
    if left_out is None:
        return 0.0, math.inf
    return ratios[left_out], ratios[-1 - left_out]


def _left_out(count: int) -> int | None:
    """How many ratios at each end may be left out of the interval."""
    chance, most = 0.0, (1 - CONFIDENCE) / 2
    for below in range(count):
        chance += math.comb(count, below) / 2**count
        if chance > most:
            return below - 1 if below else None
    return None
