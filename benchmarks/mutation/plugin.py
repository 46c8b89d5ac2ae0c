"""Runs the tests of a room once, then again with each mutant, in one process."""

from __future__ import annotations

import contextlib
import json
import random
import signal
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from _pytest.runner import runtestprotocol

from benchmarks.mutation.live import Live, Place, calls, sources
from benchmarks.mutation.mutants import Mutant, mutants_of

CAUGHT, OVERTIME, SURVIVED, NOT_RUN = "caught", "overtime", "survived", "not run by any test"
LONGEST = 20.0
"""Seconds of one test with a mutant, after which it counts as caught: it does not end."""


class OvertimeError(BaseException):
    """No handler of the code under test takes it."""


@dataclass
class MutationRun:
    """What is changed, how many changes are drawn, and what became of them."""

    root: Path
    folders: Sequence[Path]
    count: int
    seed: int
    seconds: float
    """For all tests of one mutant together."""
    report: Path
    only: str = ""
    kept: Path | None = None
    """Where what each test calls is kept for later runs; it is taken as it is there."""
    every: int = 1
    """One test of so many is run: those of a table of samples are much alike."""
    again: frozenset[str] = frozenset()
    """The texts of mutants, if only these are tried."""
    found: list[tuple[Mutant, str, str]] = field(default_factory=list)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        files = [path for folder in self.folders for path in sources(folder)]
        named = frozenset(map(str, files))
        covering = _covering(session.items[:: self.every], named, self.kept)
        live = Live(named, "relayout")
        with self.report.open("w", encoding="utf-8") as report:
            for mutant in self._drawn(files, live):
                items = [
                    (spent, item) for places, spent, item in covering if _is_in(mutant, places)
                ]
                fate, test = self._tried(mutant, live, _in_turns(items))
                self.found.append((mutant, fate, test))
                text = mutant.text(self.root)
                report.write(json.dumps({"mutant": text, "fate": fate, "test": test}) + "\n")
                report.flush()
        return True

    def _drawn(self, files: Sequence[Path], live: Live) -> list[Mutant]:
        every = [mutant for path in files for mutant in mutants_of(path) if live.has(mutant)]
        every = [mutant for mutant in every if self.only in mutant.text(self.root)]
        every = [one for one in every if not self.again or one.text(self.root) in self.again]
        drawn = random.Random(self.seed).sample(every, min(self.count, len(every)))
        return sorted(drawn, key=lambda mutant: (mutant.path, mutant.number))

    def _tried(self, mutant: Mutant, live: Live, items: Sequence[pytest.Item]) -> tuple[str, str]:
        if not items:
            return NOT_RUN, ""
        start = time.process_time()
        for item in items:
            with live.changed(mutant):
                outcome = _outcome(item)
            if outcome is not None and _outcome(item) is None:
                return outcome, item.nodeid
            if time.process_time() - start > self.seconds:
                break
        return SURVIVED, ""


def _in_turns(items: Sequence[tuple[float, pytest.Item]]) -> list[pytest.Item]:
    """Each test function has as much time as the others, for its quickest cases first."""
    passed: dict[str, float] = {}
    ranked = []
    for spent, item in sorted(items, key=_time):
        name = item.nodeid.partition("[")[0]
        passed[name] = passed.get(name, 0) + spent
        ranked.append((passed[name], item))
    return [item for _, item in sorted(ranked, key=_time)]


def _time(pair: tuple[float, pytest.Item]) -> float:
    return pair[0]


def _is_in(mutant: Mutant, places: set[Place]) -> bool:
    return (str(mutant.path), mutant.function) in places


def _covering(
    items: Sequence[pytest.Item], files: frozenset[str], kept: Path | None
) -> list[tuple[set[Place], float, pytest.Item]]:
    """The tests that pass, with what they call."""
    known: dict[str, tuple[list[Place], float]] = {}
    if kept is not None and kept.exists():
        known = json.loads(kept.read_text(encoding="utf-8"))
    for item in items:
        if item.nodeid not in known:
            known[item.nodeid] = _watched(item, files)
    if kept is not None:
        kept.write_text(json.dumps(known), encoding="utf-8")
    found = ((known[item.nodeid], item) for item in items)
    return [({(f, n) for f, n in places}, spent, item) for (places, spent), item in found if places]


def _watched(item: pytest.Item, files: frozenset[str]) -> tuple[list[Place], float]:
    """What a test calls, nothing if it fails, and its seconds."""
    start = time.process_time()
    with calls(files) as places:
        outcome = _outcome(item)
    return sorted(places) if outcome is None else [], time.process_time() - start


def _outcome(item: pytest.Item) -> str | None:
    """None if a test passes."""
    request: Any = getattr(item, "_initrequest", None)
    if request is not None:
        request()
    with _limited():
        reports = runtestprotocol(item, log=False, nextitem=None)
    failed = [report for report in reports if report.failed]
    if not failed:
        return None
    return OVERTIME if "OvertimeError" in str(failed[0].longrepr) else CAUGHT


@contextlib.contextmanager
def _limited() -> Iterator[None]:
    def over(*_: object) -> None:
        raise OvertimeError

    signal.signal(signal.SIGVTALRM, over)
    signal.setitimer(signal.ITIMER_VIRTUAL, LONGEST)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
