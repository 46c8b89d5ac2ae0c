"""Opened models that take turns: which of them is the fastest."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import isinf
from typing import Any

from relayout.backends.candidates import CompiledModel
from relayout.backends.fastest.ranking import RunWay, TimedWay
from relayout.timing.engines import Feeds
from relayout.timing.ratio import PairedRatio
from relayout.timing.turns import CORE_TIME, WALL_TIME, Clock, Times, Turns

CLOSE = 1.1
"""Those that take at most so many times as long as the fastest take turns once more."""

MOST_SPREAD = 1 / 3
"""The largest interquartile range, as a part of the median, with which times are kept."""


@dataclass(frozen=True, slots=True)
class RaceResult:
    """What a race shows of each way, the fastest first."""

    ways: tuple[TimedWay, ...]
    is_noisy: bool


def race(
    models: Mapping[RunWay, CompiledModel],
    line: RunWay,
    feeds: Feeds,
    *,
    threads: int,
    seconds: float,
) -> RaceResult:
    """Run models in turns: on one thread by the time on its core, on more by the clock.

    First until each is known to be faster or slower than `line`, then those that come close to the
    fastest among themselves. Each of the two takes at most about so many seconds.
    """
    clock = CORE_TIME if threads == 1 else WALL_TIME
    names = {str(way): way for way in models}
    times = _timed(models, str(line), feeds, clock, seconds)
    ranked = _by_speed(times, list(names), str(line))
    best = _speed(times, ranked[0], str(line))
    close = [name for name in ranked if _speed(times, name, str(line)) * CLOSE >= best]
    decisive = times
    if len(close) > 1:
        close_models = {names[name]: models[names[name]] for name in close}
        decisive = _timed(close_models, ranked[0], feeds, clock, seconds)
        ranked = [*_by_speed(decisive, close, ranked[0]), *ranked[len(close) :]]
    ways = tuple(_timed_way(names[name], times, str(line)) for name in ranked)
    return RaceResult(ways, _spread(decisive.seconds[ranked[0]]) > MOST_SPREAD)


def _timed(
    models: Mapping[RunWay, CompiledModel], given: str, feeds: Feeds, clock: Clock, seconds: float
) -> Times:
    calls = {str(way): partial(_call, model) for way, model in models.items()}
    return Turns(calls, feeds, clock).until_settled(given, seconds)


def _speed(times: Times, name: str, given: str) -> float:
    """How many times as fast a way is as another, by pairs of turns, which noise hits alike."""
    return times.ratio(name, given).median


def _by_speed(times: Times, names: Sequence[str], given: str) -> list[str]:
    return sorted(names, key=lambda name: -_speed(times, name, given))


def _call(model: CompiledModel, feeds: Feeds) -> Any:
    return model(feeds)


def _timed_way(way: RunWay, times: Times, line: str) -> TimedWay:
    taken = sorted(1e3 * each for each in times.seconds[str(way)])
    tenth = len(taken) // 10
    ratio = None if str(way) == line else _numbers(times.ratio(str(way), line))
    return TimedWay(way, statistics.median(taken), taken[tenth], taken[-1 - tenth], ratio)


def _numbers(ratio: PairedRatio) -> tuple[float, float, float] | None:
    """A ratio with its interval, which too few pairs do not have."""
    return None if isinf(ratio.high) else (ratio.median, ratio.low, ratio.high)


def _spread(seconds: Any) -> float:
    if len(seconds) < 2:
        return 0.0
    low, middle, high = statistics.quantiles(seconds, n=4, method="inclusive")
    return float((high - low) / middle) if middle > 0 else 0.0
