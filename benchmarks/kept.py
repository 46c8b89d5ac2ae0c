"""Figures that a benchmark keeps, so that its next run can say what has grown.

Seconds of different days differ with the machine, so figures are kept as ratios taken in one run:
to another tool, or to `yardstick`, a fixed piece of Python that is timed beside what is measured.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path

FOLDER = Path("build") / "benchmarks"
GREW = 1.15
"""From here on a figure has grown; what noise does to a median on a busy machine stays below."""


def compared(name: str, figures: Mapping[str, float], file: Path | None = None) -> list[str]:
    """A line a figure that the last run had too; the new figures are kept in its place."""
    file = file or FOLDER / f"{name}.json"
    last: dict[str, float] = json.loads(file.read_text()) if file.exists() else {}
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({**last, **figures}, indent=2, sort_keys=True) + "\n")
    return [_line(each, now, last[each]) for each, now in figures.items() if each in last]


def _line(name: str, now: float, before: float) -> str:
    ratio = now / before
    grew = " (GREW)" if ratio > GREW else ""
    return f"{name}: {now:.3g}, {ratio:.2f} times the last run's {before:.3g}{grew}"


def yardstick() -> float:
    """CPU seconds of a fixed piece of Python on this machine, now."""
    times = []
    for _ in range(5):
        start = time.process_time()
        _work()
        times.append(time.process_time() - start)
    return sorted(times)[2]


def _work() -> int:
    table: dict[tuple[int, str], int] = {}
    for number in range(100_000):
        key = (number % 977, str(number % 31))
        table[key] = table.get(key, 0) + number
    return sum(table.values())
