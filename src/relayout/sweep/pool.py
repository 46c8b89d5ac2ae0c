"""Jobs in processes of this machine, some at a time."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field

from relayout.sweep.job import Job
from relayout.sweep.process import POLL, PROGRAM, JobProcess, SweepRecord


@dataclass
class Pool:
    """Runs jobs on this machine: an `Executor`."""

    size: int
    program: Sequence[str] = PROGRAM
    _processes: list[JobProcess] = field(default_factory=list)

    @property
    def running(self) -> Sequence[Job]:
        return [process.job for process in self._processes]

    def records(self, jobs: Sequence[Job], tell: Callable[[], None]) -> Generator[SweepRecord]:
        """The record of each job as it ends; processes that still run then are ended."""
        waiting = list(reversed(jobs))
        try:
            while waiting or self._processes:
                while waiting and len(self._processes) < self.size:
                    self._processes.append(JobProcess.started(waiting.pop(), self.program))
                for one in [one for one in self._processes if one.has_ended()]:
                    self._processes.remove(one)
                    yield one.record()
                tell()
                time.sleep(POLL)
        finally:
            for one in self._processes:
                one.end()
