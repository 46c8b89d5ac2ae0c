"""A job of a sweep, with a line in a log when it begins and one when it ends.

    python counted_job.py LOG PARENT BYTES COMMAND ...

What comes after LOG is as for `relayout.cli.job`.
"""

from __future__ import annotations

import runpy
import sys
from collections import Counter
from pathlib import Path
from typing import NamedTuple

BEGUN, ENDED = "begun", "ended"


class JobCounts(NamedTuple):
    """How often the jobs of a sweep were begun, and how often they came to their end."""

    begun: Counter[str]
    ended: Counter[str]

    @classmethod
    def of(cls, log: Path) -> JobCounts:
        counts = cls(Counter(), Counter())
        for line in log.read_text().splitlines() if log.exists() else ():
            event, job = line.split("\t")
            (counts.begun if event == BEGUN else counts.ended)[job] += 1
        return counts

    def text(self) -> str:
        again = {job: count for job, count in self.begun.items() if count > 1}
        twice = sum(count > 1 for count in self.ended.values())
        return (
            f"{len(self.begun)} jobs begun, {len(again)} of them again since their node was lost;"
            f" {len(self.ended)} ended, {twice} of them twice"
        )


def program(log: Path) -> tuple[str, ...]:
    """What Python is to run for a job, in place of `relayout.sweep.process.PROGRAM`."""
    return (str(Path(__file__).resolve()), str(log))


def _main() -> None:
    log, *rest = sys.argv[1:]
    job = Path(rest[rest.index("-o") + 1]).parent.name
    sys.argv[1:] = rest
    _note(log, BEGUN, job)
    from relayout.sweep.process import STATUSES  # noqa: PLC0415 - a job counts from its first moment

    try:
        runpy.run_module("relayout.cli.job", run_name="__main__", alter_sys=True)
    except SystemExit as end:
        if end.code in STATUSES:
            _note(log, ENDED, job)
        raise


def _note(log: str, event: str, job: str) -> None:
    with Path(log).open("a") as file:
        file.write(f"{event}\t{job}\n")


if __name__ == "__main__":
    _main()
