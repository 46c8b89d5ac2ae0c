"""Models of a zoo on a CPU: ONNX Runtime, OpenVINO, torch.compile and relayout's choice of them.

All ways take turns in one process, on the same inputs, with the same number of threads: on one by
the time on its core, on more by the clock. `--backends` says what relayout chooses from.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

from benchmarks.networks.results import write_results
from benchmarks.speed_zoo import feeds_of
from benchmarks.zoo import Entry, entries
from relayout.backends.fastest.compiling import compile_fastest
from relayout.backends.options import CompileOptions
from relayout.backends.registry import BACKENDS
from relayout.timing.engines import ONNX_RUNTIME_ENGINE, OPENVINO_ENGINE, Engine, Feeds, RunModel
from relayout.timing.turns import CORE_TIME, WALL_TIME, Turns
from relayout.verify.verdict import NumericOptions

ORT, OPENVINO, RELAYOUT, INDUCTOR = "ONNX Runtime", "OpenVINO", "relayout", "torch.compile"

OpenModel: TypeAlias = Callable[[Entry, int, argparse.Namespace], RunModel]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", type=Path)
    parser.add_argument("--only", nargs="+", default=[])
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--ways", nargs="+", default=[ORT, OPENVINO, RELAYOUT], choices=WAYS)
    parser.add_argument("--backends", nargs="+", default=["ort", "openvino", "torch"])
    parser.add_argument("--seconds", type=float, default=10.0, help="of turns a model")
    parser.add_argument(
        "--choosing", type=float, default=10.0, help="seconds of turns to choose by"
    )
    parser.add_argument("--limit", type=float, default=1e9, help="seconds after which to stop")
    parser.add_argument("--output", type=Path, help="a file for the rows, as JSON")
    parser.add_argument("--results", type=Path, help="a file for the table")
    options = parser.parse_args()
    rows = []
    for row in measured(options):
        rows.append(row)
        print(_line(row, options.ways), flush=True)
        if options.output is not None:
            options.output.write_text(json.dumps(rows, indent=1))
        if options.results is not None:
            write_results(rows, options.results)


def measured(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """A row a model and number of threads, while there is time."""
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as scratch:
        for entry in entries(options.path, options.only, Path(scratch)):
            for threads in options.threads:
                if time.monotonic() - begun < options.limit:
                    yield _row(entry, threads, options)


def _row(entry: Entry, threads: int, options: argparse.Namespace) -> dict[str, Any]:
    feeds = feeds_of(entry.row)
    row: dict[str, Any] = {
        "model": entry.name,
        "family": entry.row.get("category", ""),
        "threads": threads,
        "shapes": {name: list(array.shape) for name, array in feeds.items()},
    }
    calls: dict[str, RunModel] = {}
    # Before it compiles, torch.compile is told to forget all it compiled, relayout's parts too.
    for way in sorted(options.ways, key=lambda way: way != INDUCTOR):
        begun = time.monotonic()
        try:
            calls[way] = _opened(way, entry, threads, feeds, options)
            row[way] = {"made_s": time.monotonic() - begun}
        except Exception as error:  # noqa: BLE001 - the other ways are still worth measuring
            row[way] = {"failed": f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"}
    if ORT not in calls:
        return row
    clock = CORE_TIME if threads == 1 else WALL_TIME
    times = Turns(calls, feeds, clock).until_settled(ORT, options.seconds)
    for way in calls:
        row[way]["ms"] = 1e3 * times.median(way)
        row[way]["turns"] = [round(1e3 * each, 4) for each in times.seconds[way]]
    return row


def _line(row: dict[str, Any], ways: list[str]) -> str:
    found = (f"{way} {row[way].get('ms') or row[way].get('failed')}" for way in ways)
    return f"{row['model']} {row['threads']}: {', '.join(found)}"


def _opened(
    way: str, entry: Entry, threads: int, feeds: Feeds, options: argparse.Namespace
) -> RunModel:
    call = WAYS[way](entry, threads, options)
    call(feeds)
    return call


def _engine(engine: Engine) -> OpenModel:
    return lambda entry, threads, _: engine.open(entry.file, threads)


def _relayout(entry: Entry, threads: int, options: argparse.Namespace) -> RunModel:
    feeds = feeds_of(entry.row)
    shapes = {name: tuple(array.shape) for name, array in feeds.items()}
    ranges = {name: tuple(limits) for name, limits in entry.row.get("integer_ranges", {}).items()}
    inputs = NumericOptions(shapes=shapes, integer_ranges=ranges)
    settings = CompileOptions(shapes=shapes, inputs=inputs, threads=threads)
    chosen = [BACKENDS[name] for name in options.backends]
    return compile_fastest(chosen, entry.file, settings, seconds=options.choosing)


def _inductor(entry: Entry, threads: int, _: argparse.Namespace) -> RunModel:
    from benchmarks.networks.inductor_cpu import inductor_run  # noqa: PLC0415 - needs torch

    return inductor_run(entry.file, threads)


WAYS: dict[str, OpenModel] = {
    ORT: _engine(ONNX_RUNTIME_ENGINE),
    OPENVINO: _engine(OPENVINO_ENGINE),
    INDUCTOR: _inductor,
    RELAYOUT: _relayout,
}
