"""Where the jobs of a sweep run: processes of this machine, or nodes of a cluster."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Protocol

from relayout.sweep.job import Job
from relayout.sweep.process import SweepRecord


class Executor(Protocol):
    """Runs jobs, some at a time."""

    @property
    def running(self) -> Sequence[Job]:
        """The jobs that are under way."""

    def records(self, jobs: Sequence[Job], tell: Callable[[], None]) -> Generator[SweepRecord]:
        """The record of each job as it ends, its files in its folder; `tell` is called often.

        Whoever stops asking stops what still runs. A job is done once its record is kept, which is
        up to the caller.
        """
