"""Measures families of networks on CUDA."""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from benchmarks.networks.cuda import FREEZING, RELAYOUT, WAYS, Made, Setting, made, reference
from benchmarks.networks.families import BUILT_WITH, SET_ASIDE, Recipe
from benchmarks.resnet101.measure import cuda_seconds, in_turns


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", default=[])
    parser.add_argument("--set-aside", action="store_true", help="the networks not built with")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--dtype", default="float16")
    parser.add_argument("--exporter", choices=("script", "dynamo"), default="script")
    parser.add_argument("--ways", nargs="+", default=[RELAYOUT, FREEZING], choices=WAYS)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--limit", type=float, default=3600.0, help="seconds after which to stop")
    parser.add_argument("--choices", action="store_true", help="show what was chosen, and times")
    parser.add_argument("--output", type=Path, help="a file for the rows, as JSON")
    options = parser.parse_args()
    torch.backends.cudnn.benchmark = True
    rows = []
    for row in measured(options):
        rows.append(row)
        print(_line(row), flush=True)
        if options.output is not None:
            options.output.write_text(json.dumps(rows, indent=1))
    print(_summary(rows))


def measured(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """A row a network, while there is time."""
    recipes = SET_ASIDE if options.set_aside else BUILT_WITH
    begun = time.monotonic()
    for name in options.only or recipes:
        recipe = recipes[name]
        if time.monotonic() - begun > options.limit or not recipe.is_installed:
            yield {"network": name, "left_out": "no time left or not installed"}
            continue
        yield _row(name, recipe, options)


def _row(name: str, recipe: Recipe, options: argparse.Namespace) -> dict[str, Any]:
    torch.manual_seed(0)
    example = recipe.make(options.batch)
    setting = Setting(options.dtype, options.exporter, options.choices)
    expected = reference(example)
    row: dict[str, Any] = {"network": name, "family": recipe.family, "batch": options.batch}
    ready: dict[str, Made] = {}
    for way in options.ways:
        try:
            with torch.no_grad():
                ready[way] = made(way, example, setting)
        except Exception as error:  # noqa: BLE001 - the other ways are still worth measuring
            row[way] = {"failed": f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"}
    runs = {way: each.graph.replay for way, each in ready.items()}
    with torch.no_grad():
        times = in_turns(runs, cuda_seconds, options.rounds)
    for way, taken in times.items():
        apart = (ready[way].result - expected).norm() / expected.norm()
        row[way] = {
            "ms": 1e3 * taken.median,
            "made_s": ready[way].seconds,
            "error": float(apart),
        }
    return row


def _line(row: dict[str, Any]) -> str:
    texts = [f"{row['network']:22}"]
    for way, found in row.items():
        if isinstance(found, dict):
            is_timed = "ms" in found
            texts.append(
                f"{way} {found['ms']:.3f} ms (made in {found['made_s']:.0f} s, error "
                f"{found['error']:.1e})"
                if is_timed
                else f"{way} failed: {found['failed']}"
            )
    ratio = _ratio(row)
    return "  ".join([*texts, "" if ratio is None else f"ratio {ratio:.3f}"])


def _ratio(row: dict[str, Any]) -> float | None:
    own, other = (row.get(way, {}).get("ms") for way in (RELAYOUT, FREEZING))
    return None if own is None or other is None else float(other / own)


def _summary(rows: list[dict[str, Any]]) -> str:
    ratios = [ratio for ratio in map(_ratio, rows) if ratio is not None]
    if not ratios:
        return "nothing to compare"
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    return (
        f"{len(ratios)} networks: {mean:.3f} times as fast as {FREEZING}, least {min(ratios):.3f}"
    )
