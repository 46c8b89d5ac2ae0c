"""What was measured, as a table that grows while the benchmark runs."""

from __future__ import annotations

import datetime
import math
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch

from benchmarks.resnet101.measure import Times

RELAYOUT = "relayout"
TOP = """\
# ResNet-101 and three other networks

Written by `python -m benchmarks.resnet101`. All ways of a network and batch size run alternately in
one process and are compared round by round; the median is how much faster relayout is.
An error is the distance from float64 (on CPU) or float32 (on GPU), by its length.
"""
HEAD = "| network | batch | way | median ms | 10% to 90% | error | relayout is faster by |"


@dataclass(frozen=True, slots=True)
class Row:
    network: str
    batch: int
    way: str
    times: Times
    error: float
    """The distance from float32, by its length."""
    turn: int = 0
    """Rows of one round were measured side by side."""

    @property
    def key(self) -> tuple[str, int, int]:
        return self.network, self.batch, self.turn


@dataclass(slots=True)
class Results:
    """All rows so far, and the file they are written to."""

    path: Path
    title: str
    versions: dict[str, str]
    rows: list[Row] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def add(self, row: Row) -> None:
        self.rows.append(row)
        times = row.times
        print(
            f"{row.network:14} batch {row.batch:3} {row.way:24} {1e3 * times.median:9.3f} ms "
            f"({1e3 * times.low:.3f} to {1e3 * times.high:.3f})  error {row.error:.1e}",
            flush=True,
        )
        self.write()

    def note(self, text: str) -> None:
        self.notes.append(text)
        print(text, flush=True)
        self.write()

    def ratios(self, way: str) -> dict[tuple[str, int, int], float]:
        """By network, batch and round, how many times as fast as a way relayout is."""
        own = {row.key: row.times for row in self.rows if row.way == RELAYOUT}
        return {
            row.key: row.times.longer_than(own[row.key])
            for row in self.rows
            if row.way == way and row.key in own
        }

    def write(self) -> None:
        """Put the section of this run into the file; those of other runs stay."""
        ways = list(dict.fromkeys(row.way for row in self.rows if row.way != RELAYOUT))
        parts = [*self._machine(), "", *self._table(), "", *self._means(ways)]
        if self.notes:
            parts += ["", *(f"- {note}" for note in self.notes)]
        put_section(self.path, self.title, parts)

    def _machine(self) -> list[str]:
        return [machine_text(self.versions)]

    def _table(self) -> list[str]:
        lines = [HEAD, "|---|---|---|---|---|---|---|"]
        for row in self.rows:
            times = row.times
            ratio = self.ratios(row.way).get(row.key)
            faster = "" if ratio is None or row.way == RELAYOUT else f"{ratio:.2f}"
            lines.append(
                f"| {row.network} | {row.batch} | {row.way} | {1e3 * times.median:.3f} "
                f"| {1e3 * times.low:.3f} to {1e3 * times.high:.3f} | {row.error:.1e} | {faster} |"
            )
        return lines

    def _means(self, ways: list[str]) -> list[str]:
        lines = []
        for way in ways:
            ratios = list(self.ratios(way).values())
            if ratios:
                mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
                lines.append(
                    f"- against {way}: {mean:.2f} times as fast on the geometric mean of "
                    f"{len(ratios)}, {min(ratios):.2f} at the least"
                )
        return lines


def put_section(path: Path, title: str, lines: Sequence[str]) -> None:
    """Write a section of a file anew; the others stay."""
    sections = _sections(path)
    sections[title] = "\n".join(lines).strip()
    text = [f"## {title}\n\n{section}\n" for title, section in sections.items()]
    path.write_text("\n".join((TOP, *text)), encoding="utf-8")


def machine_text(versions: Mapping[str, str]) -> str:
    """On what, with what and when something was measured."""
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    listed = ", ".join(f"{name} {version}" for name, version in versions.items())
    return f"{_machine_name()}; {listed}; {today}."


def _sections(path: Path) -> dict[str, str]:
    """The sections of a file, by their titles."""
    if not path.exists():
        return {}
    parts = path.read_text(encoding="utf-8").split("\n## ")[1:]
    halves = [part.partition("\n") for part in parts]
    return {title.strip(): section.strip() for title, _, section in halves}


def _machine_name() -> str:
    if torch.cuda.is_available():
        return str(torch.cuda.get_device_name())
    names = [
        line.split(":")[1].strip()
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        if line.startswith("model name")
    ]
    name = names[0] if names else platform.processor()
    return f"{name}, {len(names)} cores, {torch.backends.cpu.get_cpu_capability()}"
