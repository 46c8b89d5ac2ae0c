"""Which of several files of one model is the fastest in a runtime."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from relayout.errors import RelayoutError
from relayout.timing.engines import Engine, EngineError, Feeds, RunModel
from relayout.timing.ratio import PairedRatio
from relayout.timing.turns import CORE_TIME, WALL_TIME, Clock, Times, Turns
from relayout.verify.verdict import NumericOptions

GIVEN = "given"
"""The name of the file that others are compared with."""


@dataclass(frozen=True, slots=True)
class Entrant:
    """One file in a contest, with how many times as fast it is as the given one."""

    name: str
    seconds: float = 0.0
    """A run on one thread, by the time on its core."""
    ratio: PairedRatio | None = None
    clock_seconds: float = 0.0
    """A run on all threads, by the clock; 0 where one thread was asked for."""
    clock_ratio: PairedRatio | None = None
    refusal: str = ""
    """Why the runtime does not run it."""

    @property
    def ratios(self) -> tuple[PairedRatio, ...]:
        return tuple(ratio for ratio in (self.ratio, self.clock_ratio) if ratio is not None)

    @property
    def is_faster(self) -> bool:
        """Whether it is faster than the given file by one measure, and by none slower."""
        if any(ratio.is_slower for ratio in self.ratios):
            return False
        on_core, on_clock = self.ratio, self.clock_ratio
        is_faster_on_core = on_core is not None and on_core.is_faster
        return is_faster_on_core or (on_clock is not None and on_clock.is_clearly_faster)

    @property
    def speed(self) -> float:
        """By all measures together; the given file has 1."""
        speed = 1.0
        for ratio in self.ratios:
            speed *= ratio.median
        return speed

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Entrant:
        ratios = {
            key: PairedRatio(**data[key]) if data[key] is not None else None
            for key in ("ratio", "clock_ratio")
        }
        return cls(**{**data, **ratios})


@dataclass(frozen=True, slots=True)
class Contest:
    """What came of running files of one model in turns."""

    engine: str
    version: str
    threads: int
    entrants: tuple[Entrant, ...]

    @property
    def winner(self) -> str:
        """The fastest of those that are faster than the given file, or the given file."""
        faster = [entrant for entrant in self.entrants if entrant.is_faster]
        return max(faster, key=lambda entrant: entrant.speed).name if faster else GIVEN

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Contest:
        entrants = tuple(map(Entrant.from_json, data["entrants"]))
        return cls(data["engine"], data["version"], data["threads"], entrants)


def contest(
    files: Mapping[str, Path],
    engine: Engine,
    options: NumericOptions,
    *,
    threads: int = 1,
    seconds: float = 20.0,
) -> Contest:
    """Run files in turns on one thread, by the time on its core, then on threads, by the clock.

    Each of the two takes at most about so many seconds. A file that is slower on one thread is not
    run on more.
    """
    from relayout.timing.feeds import feeds_of

    feeds = feeds_of(files[GIVEN], options)
    on_core = _Race(engine, feeds, 1, CORE_TIME, seconds)
    entrants = tuple(on_core.entrants(files))
    if threads > 1:
        on_threads = _Race(engine, feeds, threads, WALL_TIME, seconds)
        entrants = tuple(on_threads.with_clock(entrants, files))
    return Contest(engine.summary, engine.version, threads, entrants)


@dataclass(frozen=True, slots=True)
class _Race:
    """Files that take turns on some threads."""

    engine: Engine
    feeds: Feeds
    threads: int
    clock: Clock
    seconds: float

    def entrants(self, files: Mapping[str, Path]) -> Iterator[Entrant]:
        calls, refusals = self._opened(files)
        times = self._timed(calls)
        for name in files:
            if name in refusals:
                yield Entrant(name, refusal=refusals[name])
            elif name == GIVEN:
                yield Entrant(name, times.median(name))
            else:
                yield Entrant(name, times.median(name), times.ratio(name, GIVEN))

    def with_clock(
        self, entrants: Sequence[Entrant], files: Mapping[str, Path]
    ) -> Iterator[Entrant]:
        """Those that were not slower, with what this race shows of them."""
        running = [entrant for entrant in entrants if not entrant.refusal]
        names = [each.name for each in running if each.ratio is None or not each.ratio.is_slower]
        calls, _ = self._opened({name: files[name] for name in names})
        times = self._timed(calls)
        for entrant in entrants:
            name = entrant.name
            if name not in calls:
                yield entrant
            else:
                ratio = None if name == GIVEN else times.ratio(name, GIVEN)
                yield replace(entrant, clock_seconds=times.median(name), clock_ratio=ratio)

    def _opened(self, files: Mapping[str, Path]) -> tuple[dict[str, RunModel], dict[str, str]]:
        """Each file ready to run, or why it does not; the given one must."""
        calls: dict[str, RunModel] = {}
        refusals: dict[str, str] = {}
        for name, file in files.items():
            try:
                call = self.engine.open(file, self.threads)
                call(self.feeds)
                calls[name] = call
            except EngineError as error:
                refusals[name] = str(error)
        if GIVEN in refusals:
            reason = f"{self.engine.summary} does not run the given model: {refusals[GIVEN]}"
            raise RelayoutError(reason)
        return calls, refusals

    def _timed(self, calls: Mapping[str, RunModel]) -> Times:
        return Turns(calls, self.feeds, self.clock).until_settled(GIVEN, self.seconds)
