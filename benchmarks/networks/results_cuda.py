"""The table of what was measured on CUDA."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeAlias

import torch

from benchmarks.networks.cuda import EAGER, FREEZING, FROZEN, INDUCTOR, RELAYOUT, TUNED
from benchmarks.networks.results import version_of

Row: TypeAlias = dict[str, Any]

WAYS = (RELAYOUT, FREEZING, FROZEN, INDUCTOR, TUNED, EAGER)
PACKAGES = ("torch", "triton", "torchvision", "transformers", "onnx")
HEAD = """\
Milliseconds a batch: the median of rounds in which all ways take turns in one process, each as one
CUDA graph, images channels last. relayout begins with the ONNX model that torch exports; the others
have the module of torch. Weights are random; an error is the distance from float32, by its length.
The last column is how many times as fast relayout is as Inductor with freezing, which is given as
an option of torch.compile; "frozen" is freezing as a setting for all of torch, where measured.
By `python -m benchmarks.networks --device cuda`."""


def machine() -> str:
    """What a row is measured on, and when."""
    versions = ", ".join(f"{name} {version_of(name)}" for name in PACKAGES)
    return f"{datetime.now(tz=UTC):%Y-%m-%d}, {torch.cuda.get_device_name()}, {versions}"


def write_results(rows: Sequence[Row], path: Path) -> None:
    path.write_text("\n".join(_lines(rows)) + "\n", encoding="utf-8")


def _lines(rows: Sequence[Row]) -> Iterator[str]:
    yield "# Networks on a GPU"
    yield ""
    for text in dict.fromkeys(row["on"] for row in rows):
        yield f"{text}."
    yield HEAD
    titles = {False: "The networks that choices were made on", True: "Networks that were set aside"}
    for is_set_aside, title in titles.items():
        chosen = [row for row in rows if row["is_set_aside"] is is_set_aside]
        if chosen:
            yield from _table(title, chosen)


def _table(title: str, rows: Sequence[Row]) -> Iterator[str]:
    ways = [way for way in WAYS if any(way in row for row in rows)]
    yield ""
    yield f"## {title}"
    yield ""
    yield f"| network | family | batch | type | {' | '.join(ways)} | error | times as fast |"
    yield f"|---|---|---|---|{'---|' * (len(ways) + 2)}"
    for row in rows:
        about = f"{row['network']} | {row['family']} | {row['batch']} | {row['dtype']}"
        times = " | ".join(_time(row.get(way, {})) for way in ways)
        error = row.get(RELAYOUT, {}).get("error")
        ratio = ratio_of(row)
        last = ["" if error is None else f"{error:.1e}", "" if ratio is None else f"{ratio:.2f}"]
        yield f"| {about} | {times} | {' | '.join(last)} |"
    yield ""
    yield f"{summary(rows)}."


def _time(found: Row) -> str:
    return f"{found['ms']:.3f}" if "ms" in found else "does not run"


def ratio_of(row: Row) -> float | None:
    own, other = (row.get(way, {}).get("ms") for way in (RELAYOUT, FREEZING))
    return None if own is None or other is None else float(other / own)


def summary(rows: Sequence[Row]) -> str:
    ratios = [ratio for ratio in map(ratio_of, rows) if ratio is not None]
    if not ratios:
        return "nothing to compare"
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    return (
        f"{len(ratios)} networks: {mean:.3f} times as fast as {FREEZING} on the geometric mean, "
        f"{min(ratios):.3f} at the least"
    )
