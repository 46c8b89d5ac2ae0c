"""Jobs in processes of this machine, some at a time, each within its limits."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from relayout.sweep.job import ANSWER, MESSAGES, Job

SweepRecord: TypeAlias = dict[str, Any]

DONE, REFUSED, FAILED, TIMED_OUT, CRASHED = "done", "refused", "failed", "timed out", "crashed"
STATUSES = {0: DONE, 1: REFUSED, 2: FAILED}
"""By exit code; any other is a crash."""

_POLL = 0.02
_GRACE = 10.0
"""Seconds that a process has to remove what it staged."""

_LAST = 500
"""Characters of what a process wrote last that a record keeps."""


@dataclass
class Pool:
    """Runs jobs; `launch` is the command line that a job's own arguments are added to."""

    launch: Sequence[str]
    size: int
    running: list[_Running] = field(default_factory=list)

    def records(self, jobs: Sequence[Job], tell: Callable[[], None]) -> Iterator[SweepRecord]:
        """The record of each job as it ends; processes that still run then are ended."""
        waiting = list(reversed(jobs))
        try:
            while waiting or self.running:
                while waiting and len(self.running) < self.size:
                    self.running.append(_Running.started(waiting.pop(), self.launch))
                for one in [one for one in self.running if one.has_ended()]:
                    self.running.remove(one)
                    yield one.record()
                tell()
                time.sleep(_POLL)
        finally:
            for one in self.running:
                one.end()


@dataclass
class _Running:
    """A job whose process runs."""

    job: Job
    process: subprocess.Popen[bytes]
    began: float
    timed_out: bool = False

    @classmethod
    def started(cls, job: Job, launch: Sequence[str]) -> _Running:
        # What a run left that was killed is no result.
        shutil.rmtree(job.folder, ignore_errors=True)
        job.folder.mkdir(parents=True)
        memory = "" if job.call.memory is None else str(job.call.memory)
        with (
            (job.folder / ANSWER).open("wb") as answer,
            (job.folder / MESSAGES).open("wb") as messages,
        ):
            process = subprocess.Popen(
                [*launch, memory, *job.arguments],
                stdin=subprocess.DEVNULL,
                stdout=answer,
                stderr=messages,
                start_new_session=True,
                env=_environment(),
            )
        return cls(job, process, time.monotonic())

    def has_ended(self) -> bool:
        if self.process.poll() is not None:
            return True
        if time.monotonic() - self.began <= self.job.call.seconds:
            return False
        self.timed_out = True
        self.end()
        return True

    def end(self) -> None:
        """End the process and all that it started."""
        self._signal(signal.SIGTERM)
        try:
            self.process.wait(_GRACE)
        except subprocess.TimeoutExpired:
            self._signal(signal.SIGKILL)
            self.process.wait()

    def _signal(self, number: int) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)

    def record(self) -> SweepRecord:
        answer = _read_json(self.job.folder / ANSWER)
        last = (self.job.folder / MESSAGES).read_text(errors="replace").strip()[-_LAST:]
        code = self.process.returncode
        status = TIMED_OUT if self.timed_out else STATUSES.get(code, CRASHED)
        record = self.job.finished(
            {
                "status": status,
                "code": code,
                "seconds": round(time.monotonic() - self.began, 3),
                "error": "" if status == DONE else _error(status, answer, last),
                "answer": answer,
            }
        )
        for name in (ANSWER, MESSAGES):
            (self.job.folder / name).unlink()
        return record


def _error(status: str, answer: Mapping[str, Any], last: str) -> str:
    """Why a model was not delivered, in a line."""
    if status == TIMED_OUT:
        return "it took more seconds than allowed"
    if status == REFUSED and "verdict" in answer:
        return str(answer["verdict"])
    told = answer.get("error", {}).get("message") or last or "it ended without a message"
    return " ".join(str(told).split())


def _read_json(file: Path) -> dict[str, Any]:
    try:
        answer = json.loads(file.read_text())
    except ValueError:
        return {}
    return answer if isinstance(answer, dict) else {}


def _environment() -> dict[str, str]:
    """A process finds the package where this one found it."""
    source = str(Path(__file__).resolve().parents[2])
    known = os.environ.get("PYTHONPATH")
    return {**os.environ, "PYTHONPATH": os.pathsep.join([source, known] if known else [source])}


def this_machine() -> list[str]:
    """What starts a job on this machine."""
    return [sys.executable, "-m", "relayout.cli.job"]
