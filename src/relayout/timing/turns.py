"""Models that take turns in a runtime until it is known which of them is faster."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import TypeAlias

from relayout.timing.engines import Feeds, RunModel
from relayout.timing.ratio import PairedRatio

Clock: TypeAlias = Callable[[], float]

CORE_TIME: Clock = time.thread_time
"""What the calling thread spent on its core: for models that run on one thread."""
WALL_TIME: Clock = time.perf_counter

SHORTEST_SAMPLE = 1e-3
"""Seconds: shorter runs are timed several at once."""
FIRST_LOOK = 12
"""Pairs after which the interval is looked at first; then whenever there are half as many more.

Who looks after every pair stops at a chance extreme sooner or later.
"""
WARM_UP = 2


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds a run, one entry a turn, of models that took turns."""

    seconds: Mapping[str, Sequence[float]]

    def median(self, name: str) -> float:
        return statistics.median(self.seconds[name])

    def ratio(self, name: str, given: str) -> PairedRatio:
        """How many times as fast a model is as the given one."""
        return PairedRatio.of(self.seconds[given], self.seconds[name])


@dataclass(slots=True)
class Turns:
    """Runs models in turns on the same inputs."""

    calls: Mapping[str, RunModel]
    feeds: Feeds
    clock: Clock = CORE_TIME
    repeats: int = 1
    """How many runs of a model make one sample."""
    taken: dict[str, list[float]] = field(default_factory=dict)
    last: str = ""
    """The model that was run last."""
    random: Random = field(default_factory=lambda: Random(0))
    """Gives the orders, the same in every contest."""

    def until_settled(self, given: str, seconds: float) -> Times:
        """Turns until every model is known to be faster or slower than the given one, or not.

        At most about so many seconds are spent, by the clock that times the runs: on a busy machine
        time on the core takes longer, and decides as well.
        """
        deadline = self.clock() + seconds
        self._warm_up()
        next_look = FIRST_LOOK
        while True:
            self._turn()
            pairs = len(self.taken[given])
            if self.clock() > deadline:
                break
            if pairs < next_look:
                continue
            next_look = pairs + pairs // 2
            others = (name for name in self.calls if name != given)
            if all(self.times.ratio(name, given).is_settled for name in others):
                break
        return self.times

    @property
    def times(self) -> Times:
        return Times({name: tuple(each) for name, each in self.taken.items()})

    def _warm_up(self) -> None:
        """Have each model allocate what it needs, and find out how short its runs are."""
        shortest = min(self._sampled(call) for call in self.calls.values() for _ in range(WARM_UP))
        self.repeats = max(1, round(SHORTEST_SAMPLE / max(shortest, 1e-6)))
        self.taken = {name: [] for name in self.calls}

    def _turn(self) -> None:
        """One sample of each, in an order in which none comes after itself.

        Caches take more than one run to fill again, so a model that came after itself now and then
        would be fast in some pairs, and the median of their ratios one of two extremes.
        """
        names = list(self.calls)
        self.random.shuffle(names)
        while names[0] == self.last and len(names) > 1:
            self.random.shuffle(names)
        for name in names:
            self.taken[name].append(self._sampled(self.calls[name]))
        self.last = names[-1]

    def _sampled(self, call: RunModel) -> float:
        """Seconds a run, after one that brings back into caches what others drove out of them.

        Those are not the same for all it may come after.
        """
        call(self.feeds)
        since = self.clock()
        for _ in range(self.repeats):
            call(self.feeds)
        return (self.clock() - since) / self.repeats
