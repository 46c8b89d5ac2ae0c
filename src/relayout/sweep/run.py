"""A sweep: what is done already is kept, the rest is run, and all of it becomes table and page."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from relayout.errors import RelayoutError
from relayout.sweep.executor import Executor
from relayout.sweep.index import INDEX, index_page
from relayout.sweep.job import Job, SweptCall
from relayout.sweep.process import DONE
from relayout.sweep.sources import found_models
from relayout.sweep.table import TABLE, SweepRow, row_of, write_table

SweepPart: TypeAlias = tuple[int, int]
"""Which of how many parts of the models, counted from 1."""

_SHOWN = 8
"""Models under way that are named."""


@dataclass
class SweepProgress:
    """How far a sweep is."""

    total: int
    kept: int
    """Models that a run before had finished."""
    statuses: Counter[str] = field(default_factory=Counter)
    began: float = field(default_factory=time.monotonic)
    running: Sequence[str] = ()

    @property
    def finished(self) -> int:
        return self.statuses.total()

    @property
    def left(self) -> int:
        return self.total - self.kept - self.finished

    def text(self) -> str:
        """Counts, rate and the time that is left, in a line."""
        told = [f"{self.kept + self.finished} of {self.total} models"]
        told += [f"{self.kept} known before"] if self.kept else []
        told += [f"{count} {status}" for status, count in sorted(self.statuses.items())]
        seconds = time.monotonic() - self.began
        if self.finished and self.left:
            rate = self.finished / seconds
            told += [f"{rate * 60:.3g} a minute", f"{_time_text(self.left / rate)} left"]
        told += [f"now {_names_text(self.running)}"] if self.running else []
        return "; ".join(told)


def _names_text(names: Sequence[str]) -> str:
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")


def _time_text(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


Tell: TypeAlias = Callable[[SweepProgress], None]
"""Called again and again while a sweep runs."""


@dataclass(frozen=True)
class ModelSweep:
    """The jobs of a sweep."""

    jobs: tuple[Job, ...]
    out: Path
    call: SweptCall

    @classmethod
    def of(cls, sources: Sequence[str], out: Path, call: SweptCall) -> ModelSweep:
        models = found_models(sources)
        # Nodes of a cluster work in other folders.
        out = out.absolute()
        try:
            out.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RelayoutError(f"{out} cannot be made: {error.strerror}") from None
        inside = [model for model in models if out.resolve() not in model.path.resolve().parents]
        return cls(tuple(Job(model, call, out) for model in inside), out, call)

    def part(self, part: SweepPart) -> ModelSweep:
        """Every so-many-th job, so that machines can share a sweep."""
        number, count = part
        return ModelSweep(self.jobs[number - 1 :: count], self.out, self.call)

    def run(self, executor: Executor, tell: Tell) -> list[SweepRow]:
        """Do what is not done yet; the rows of all models, in their order."""
        rows = {job.model.name: _known_row(job) for job in self.jobs}
        pending = [job for job in self.jobs if rows[job.model.name] is None]
        by_name = {job.model.name: job for job in pending}
        progress = SweepProgress(len(self.jobs), len(self.jobs) - len(pending))

        def step() -> None:
            progress.running = [job.model.name for job in executor.running]
            tell(progress)

        with closing(executor.records(pending, step)) as records:
            for record in records:
                name = record["name"]
                by_name[name].keep(record)
                rows[name] = row_of(record)
                progress.statuses[record["status"]] += 1
        step()
        return [row for row in rows.values() if row is not None]

    def write(self, rows: Sequence[SweepRow]) -> list[Path]:
        """The table and the page of all models, as far as what writes them is installed."""
        index = self.out / INDEX
        index.write_text(index_page(rows), encoding="utf-8")
        return [index, *write_table(rows, self.out / TABLE)]


def _known_row(job: Job) -> SweepRow | None:
    """What a run before found out about a model; all of it would fill the memory."""
    known = job.record()
    return None if known is None else row_of(known)


def all_done(rows: Sequence[SweepRow]) -> bool:
    return all(row["status"] == DONE for row in rows)
