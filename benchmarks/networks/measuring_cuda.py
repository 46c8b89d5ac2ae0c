"""Measures families of networks on CUDA.

With `--jobs N` that many networks are compiled at a time, each in a process of its own, and
measured one after the other when all of them are ready.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from benchmarks.networks.cuda import (
    FREEZING,
    FROZEN,
    RELAYOUT,
    WAYS,
    Made,
    Setting,
    kernels,
    made,
    reference,
)
from benchmarks.networks.families import BUILT_WITH, SET_ASIDE, Recipe
from benchmarks.networks.results_cuda import machine, ratio_of, summary, write_results
from benchmarks.networks.side_by_side import READY, side_by_side
from benchmarks.resnet101.measure import cuda_seconds, in_turns
from relayout.backends.torch.choose.bench import alone_on


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", help="networks of either kind, in this order")
    parser.add_argument("--set-aside", action="store_true", help="the networks not built with")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--dtype", default="float16")
    parser.add_argument("--exporter", choices=("script", "dynamo"), default="script")
    parser.add_argument("--ways", nargs="+", default=[RELAYOUT, FREEZING, FROZEN], choices=WAYS)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--limit", type=float, default=3600.0, help="seconds after which to stop")
    parser.add_argument("--jobs", type=int, default=1, help="networks compiled at a time")
    parser.add_argument("--waits", action="store_true", help="for a line before it measures")
    parser.add_argument("--kernels", type=int, default=0, help="how many of the longest to keep")
    parser.add_argument("--choices", action="store_true", help="keep what was chosen, and times")
    parser.add_argument("--rows", type=Path, nargs="+", default=[], help="rows measured before")
    parser.add_argument("--output", type=Path, help="a file for the rows, as JSON")
    parser.add_argument("--results", type=Path, help="a file for the table")
    options = parser.parse_args()
    torch.backends.cudnn.benchmark = True
    rows = [row for path in options.rows for row in json.loads(path.read_text())]
    for row in rows_of(options):
        rows.append(row)
        print(_line(row), flush=True)
        if options.output is not None:
            options.output.write_text(json.dumps(rows, indent=1))
    if options.results is not None:
        write_results(rows, options.results)
    print(summary(rows))


def rows_of(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """A row a network, while there is time."""
    recipes = {**BUILT_WITH, **SET_ASIDE}
    names = list(SET_ASIDE if options.set_aside else BUILT_WITH)
    names = names if options.only is None else options.only
    if options.jobs > 1:
        yield from side_by_side(names, options)
        return
    begun = time.monotonic()
    for name in names:
        recipe = recipes[name]
        if time.monotonic() - begun > options.limit or not recipe.is_installed:
            print(f"{name}: left out, for want of time or of {recipe.package}", flush=True)
            continue
        yield _row(name, recipe, options)


def _row(name: str, recipe: Recipe, options: argparse.Namespace) -> dict[str, Any]:
    torch.manual_seed(0)
    torch._dynamo.reset()  # noqa: SLF001 - there is no public name
    example = recipe.make(options.batch)
    setting = Setting(options.dtype, options.exporter)
    expected = reference(example)
    row: dict[str, Any] = {
        "network": name,
        "family": recipe.family,
        "is_set_aside": name in SET_ASIDE,
        "batch": options.batch,
        "dtype": options.dtype,
        "on": machine(),
    }
    ready: dict[str, Made] = {}
    for way in options.ways:
        try:
            with torch.no_grad():
                ready[way] = made(way, example, setting)
        except Exception as error:  # noqa: BLE001 - the other ways are still worth measuring
            row[way] = {"failed": f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"}
    if options.waits:
        print(READY, flush=True)
        sys.stdin.readline()
    runs = {way: each.graph.replay for way, each in ready.items()}
    with torch.no_grad(), alone_on("cuda"):
        times = in_turns(runs, cuda_seconds, options.rounds)
    for way, taken in times.items():
        apart = (ready[way].result - expected).norm() / expected.norm()
        row[way] = {
            "ms": 1e3 * taken.median,
            "low_ms": 1e3 * taken.low,
            "high_ms": 1e3 * taken.high,
            "made_s": ready[way].seconds,
            "error": float(apart),
        }
        if options.choices and ready[way].ready.choices:
            row[way]["choices"] = ready[way].ready.choices
        if options.kernels:
            row[way]["kernels"] = kernels(runs[way], options.kernels)
    return row


def _line(row: dict[str, Any]) -> str:
    texts = [f"{row['network']:22}"]
    for way in WAYS:
        found = row.get(way, {})
        if "ms" in found:
            made_in = f"made in {found['made_s']:.0f} s, error {found['error']:.1e}"
            texts.append(f"{way} {found['ms']:.3f} ms ({made_in})")
        elif found:
            texts.append(f"{way} failed: {found['failed']}")
    ratio = ratio_of(row)
    return "  ".join([*texts, "" if ratio is None else f"ratio {ratio:.3f}"])
