"""The table of what was measured on a CPU."""

from __future__ import annotations

import math
import platform
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, TypeAlias

from relayout.backends.machine import processor_name
from relayout.timing.ratio import PairedRatio

Row: TypeAlias = dict[str, Any]

PEERS = ("ONNX Runtime", "OpenVINO", "torch.compile")
OWN = "relayout"
PACKAGES = ("onnxruntime", "openvino", "torch")
HEAD = """\
Milliseconds a run, all ways in turns in one process; one thread by the time on its core, more by
the clock. The last two columns are how many times as fast relayout's choice is as ONNX Runtime, and
as the faster of ONNX Runtime and OpenVINO, both with the given file: the median of pairs of turns,
and an interval that holds it with 95 % confidence.
By `python -m benchmarks.networks --device cpu PATH`."""
ALLOWED = 0.97
"""A ratio below this is slower by more than 3 %."""


def write_results(rows: Sequence[Row], path: Path) -> None:
    path.write_text("\n".join(_lines(rows)) + "\n", encoding="utf-8")


def _lines(rows: Sequence[Row]) -> Iterator[str]:
    yield "# Networks on a CPU"
    yield ""
    versions = ", ".join(f"{name} {version_of(name)}" for name in PACKAGES)
    date = f"{datetime.now(tz=UTC):%Y-%m-%d}"
    yield f"{date}, {processor_name()}, Python {platform.python_version()}, {versions}."
    yield HEAD
    for threads in sorted({row["threads"] for row in rows}):
        yield from _table([row for row in rows if row["threads"] == threads], threads)


def _table(rows: Sequence[Row], threads: int) -> Iterator[str]:
    ways = [way for way in (*PEERS, OWN) if any(way in row for row in rows)]
    yield ""
    yield f"## {threads} thread{'s' if threads > 1 else ''}"
    yield ""
    yield f"| model | family | {' | '.join(ways)} | by ONNX Runtime | by the better |"
    yield f"|---|---|{'---|' * (len(ways) + 2)}"
    for row in rows:
        times = " | ".join(_time(row.get(way, {})) for way in ways)
        beside = " | ".join(_ratio(ratio) for ratio in (_against_ort(row), _against_best(row)))
        yield f"| {row['model']} | {row['family']} | {times} | {beside} |"
    yield ""
    yield _summary(rows)


def _time(found: Row) -> str:
    return f"{found['ms']:.2f}" if "ms" in found else "does not run"


def _ratio(ratio: PairedRatio | None) -> str:
    if ratio is None:
        return ""
    return f"{ratio.median:.2f} ({ratio.low:.2f} to {ratio.high:.2f})"


def _against(row: Row, way: str) -> PairedRatio | None:
    one, other = (row.get(each, {}).get("turns") for each in (way, OWN))
    return None if one is None or other is None else PairedRatio.of(one, other)


def _against_ort(row: Row) -> PairedRatio | None:
    return _against(row, PEERS[0])


def _against_best(row: Row) -> PairedRatio | None:
    """Against the faster of the two runtimes."""
    timed = [way for way in PEERS[:2] if "ms" in row.get(way, {})]
    return _against(row, min(timed, key=lambda way: row[way]["ms"])) if timed else None


def _summary(rows: Sequence[Row]) -> str:
    by_ort = [ratio.median for ratio in map(_against_ort, rows) if ratio is not None]
    best = [ratio for ratio in map(_against_best, rows) if ratio is not None]
    if not by_ort:
        return "Nothing to compare."
    slower = sum(ratio.median < ALLOWED for ratio in best)
    surely = sum(ratio.high < ALLOWED for ratio in best)
    return (
        f"{len(by_ort)} models: {_mean(by_ort):.3f} times as fast as ONNX Runtime and "
        f"{_mean([ratio.median for ratio in best]):.3f} times as fast as the better of the two on "
        f"the geometric mean; {slower} slower than the better by more than 3 % in the median, "
        f"{surely} of them with the whole interval."
    )


def _mean(ratios: Sequence[float]) -> float:
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def version_of(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"
