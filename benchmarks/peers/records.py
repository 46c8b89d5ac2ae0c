"""What was measured, as it is kept between runs."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from relayout.timing.contest import GIVEN

CHANGED = 0.03
"""A ratio that falls by more than this is reported."""


@dataclass(slots=True)
class Kept:
    """The records of all models so far, and the file that they are in."""

    file: Path
    versions: dict[str, str] = field(default_factory=dict)
    date: str = ""
    models: dict[str, dict[str, Any]] = field(default_factory=dict)

    @classmethod
    def of(cls, file: Path) -> Kept:
        if not file.exists():
            return cls(file)
        data = json.loads(file.read_text())
        return cls(file, data["versions"], data["date"], data["models"])

    def put(self, name: str, record: dict[str, Any]) -> list[str]:
        """Keep the record of a model; returns what got worse since the last time."""
        worse = list(worse_than(self.models.get(name, {}), record))
        self.models[name] = record
        ordered = dict(sorted(self.models.items()))
        data = {"date": self.date, "versions": self.versions, "models": ordered}
        self.file.write_text(json.dumps(data, indent=1) + "\n")
        return worse

    def ratios(self, engine: str, tool: str, names: Iterable[str] = ()) -> dict[str, float]:
        """By model, how many times as fast as the given one a tool's result is."""
        return {
            name: ratio
            for name in list(names) or sorted(self.models)
            if (ratio := ratio_of(self.models[name], engine, tool)) is not None
        }


def ratio_of(record: Mapping[str, Any], engine: str, tool: str) -> float | None:
    """How many times as fast a result is as the given model; None where it does not run."""
    times = record.get("runtimes", {}).get(engine, {})
    entrant = times.get(tool)
    if not isinstance(entrant, Mapping) or entrant["refusal"]:
        return None
    if entrant["ratio"] is None:
        return 1.0
    return float(entrant["ratio"]["median"])


def milliseconds(record: Mapping[str, Any], engine: str) -> float | None:
    """Of the given model."""
    given = record.get("runtimes", {}).get(engine, {}).get(GIVEN)
    return 1e3 * float(given["seconds"]) if isinstance(given, Mapping) else None


def figure(record: Mapping[str, Any], tool: str, name: str) -> int | None:
    """Transposes or bytes of a result; None where there is none, or it cannot be read."""
    found = record.get("figures", {}).get(tool)
    return int(found[name]) if isinstance(found, Mapping) else None


def moving(record: Mapping[str, Any], tool: str) -> tuple[float, float] | None:
    """Milliseconds in Transposes and Reorders, and in all, by ONNX Runtime's profile."""
    found = record.get("shares", {}).get(tool)
    return (found[0], found[1]) if isinstance(found, list) else None


def worse_than(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    """What got worse since a record was made."""
    for tool in now.get("figures", {}):
        was, left = figure(before, tool, "transposes"), figure(now, tool, "transposes")
        if was is not None and left is not None and left > was:
            yield f"{tool}: {was} -> {left} Transposes"
        for engine in now.get("runtimes", {}):
            old, new = ratio_of(before, engine, tool), ratio_of(now, engine, tool)
            if old is not None and new is not None and new < old * (1 - CHANGED):
                yield f"{tool}, {engine}: {old:.3f} -> {new:.3f} times as fast as given"


def mean(ratios: Iterable[float]) -> float:
    """The geometric mean."""
    values = list(ratios)
    return math.exp(statistics.fmean(map(math.log, values))) if values else math.nan
