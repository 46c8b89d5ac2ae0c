"""A job in a process of this machine, within its limits, and the record of what it did."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, BinaryIO, TypeAlias

from relayout.sweep.job import Job

SweepRecord: TypeAlias = dict[str, Any]
JobOutcome: TypeAlias = dict[str, Any]
"""The part of a record that the process of a job is needed for."""

DONE, REFUSED, FAILED, TIMED_OUT, CRASHED = "done", "refused", "failed", "timed out", "crashed"
STATUSES = {0: DONE, 1: REFUSED, 2: FAILED}
"""By exit code; any other is a crash."""

PROGRAM = ("-m", "relayout.cli.job")
"""What Python is to run for a job: the process that starts it, the memory and the job follow."""

POLL = 0.02
_GRACE = 10.0
"""Seconds that a process has to remove what it staged."""

_LAST = 500
"""Characters of what a process wrote last that a record keeps."""


def run_job(job: Job, program: Sequence[str] = PROGRAM) -> JobOutcome:
    """What became of a job, once its process has ended; an interrupt ends the process too."""
    process = JobProcess.started(job, program)
    try:
        while not process.has_ended():
            time.sleep(POLL)
    except BaseException:
        process.end()
        raise
    return process.outcome()


@dataclass
class JobProcess:
    """A job whose process runs."""

    job: Job
    process: subprocess.Popen[bytes]
    answer: BinaryIO
    messages: BinaryIO
    began: float
    timed_out: bool = False

    @classmethod
    def started(cls, job: Job, program: Sequence[str]) -> JobProcess:
        job.clear()
        memory = "" if job.call.memory is None else str(job.call.memory)
        # Not in the job's folder, where a process could still be at work whose node was given up.
        answer, messages = (TemporaryFile() for _ in range(2))  # noqa: SIM115 - closed when read
        process = subprocess.Popen(
            [sys.executable, *program, str(os.getpid()), memory, *job.arguments],
            stdin=subprocess.DEVNULL,
            stdout=answer,
            stderr=messages,
            start_new_session=True,
            env=_environment(),
        )
        return cls(job, process, answer, messages, time.monotonic())

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
        return self.job.finished(self.outcome())

    def outcome(self) -> JobOutcome:
        """What the process did and answered."""
        answer = _as_json(_text(self.answer))
        last = _text(self.messages).strip()[-_LAST:]
        code = self.process.returncode
        status = TIMED_OUT if self.timed_out else STATUSES.get(code, CRASHED)
        return {
            "status": status,
            "code": code,
            "seconds": round(time.monotonic() - self.began, 3),
            "error": "" if status == DONE else _error(status, answer, last),
            "answer": answer,
        }


def _error(status: str, answer: Mapping[str, Any], last: str) -> str:
    """Why a model was not delivered, in a line."""
    if status == TIMED_OUT:
        return "it took more seconds than allowed"
    if status == REFUSED and "verdict" in answer:
        return str(answer["verdict"])
    told = answer.get("error", {}).get("message") or last or "it ended without a message"
    return " ".join(str(told).split())


def _text(file: BinaryIO) -> str:
    with file:
        file.seek(0)
        return file.read().decode(errors="replace")


def _as_json(text: str) -> dict[str, Any]:
    try:
        answer = json.loads(text)
    except ValueError:
        return {}
    return answer if isinstance(answer, dict) else {}


def _environment() -> dict[str, str]:
    """A process finds the package where this one found it."""
    source = str(Path(__file__).resolve().parents[2])
    known = os.environ.get("PYTHONPATH")
    return {**os.environ, "PYTHONPATH": os.pathsep.join([source, known] if known else [source])}
