"""Times of several ways to run the same thing, run alternately."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch

Run = Callable[[], Any]


@dataclass(frozen=True, slots=True)
class Times:
    """The median of what was measured, and the range of the middle eight tenths."""

    median: float
    low: float
    high: float
    each: tuple[float, ...]
    """One time per round; each round runs every way once."""

    @classmethod
    def of(cls, seconds: list[float]) -> Times:
        ordered = sorted(seconds)
        tenth = len(ordered) // 10
        return cls(statistics.median(ordered), ordered[tenth], ordered[-1 - tenth], tuple(seconds))

    def longer_than(self, other: Times) -> float:
        """How many times as long as another: the median over the rounds, compared in each round.

        A machine that others use is slower at one time than at another, for all ways alike.
        """
        pairs = zip(self.each, other.each, strict=True)
        return statistics.median(own / theirs for own, theirs in pairs)


def in_turns(
    runs: Mapping[str, Run], seconds_of: Callable[[Run], float], rounds: int
) -> dict[str, Times]:
    """One run of each, again and again, so that what disturbs the machine disturbs all alike."""
    for run in runs.values():
        seconds_of(run)
    taken: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            taken[name].append(seconds_of(run))
    return {name: Times.of(seconds) for name, seconds in taken.items()}


PAUSE = 0.2
"""Seconds after which the threads of the way that ran before have gone to sleep."""


def wall_seconds(run: Run, repeats: int = 3) -> float:
    """Time of one run among several in a row, with no threads of other ways awake."""
    time.sleep(PAUSE)
    for _ in range(2):
        run()
    since = time.perf_counter()
    for _ in range(repeats):
        run()
    return (time.perf_counter() - since) / repeats


def cpu_seconds(run: Run) -> float:
    """Time of this process on all cores together, which other processes do not add to."""
    since = time.process_time()
    run()
    return time.process_time() - since


def cuda_seconds(run: Run, repeats: int = 5) -> float:
    first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    first.record()
    for _ in range(repeats):
        run()
    last.record()
    torch.cuda.synchronize()
    return float(first.elapsed_time(last)) / 1e3 / repeats
