"""Hashes of all that relayout writes: python -m benchmarks.replay PATH [--against FILE]

PATH is as for `benchmarks.zoo`; without it only the small models in the tree are run. Every model
is optimised for every target and objective, fused in every mode, and compiled with one statement a
node, all without verification. `--record FILE` keeps the hashes and the CPU seconds; `--against
FILE` compares with what was kept, prints each output that differs and exits with 1 if one does. A
change of structure changes no hash.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import io
import json
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import TypeAlias

import onnx

from benchmarks.zoo import entries
from relayout.cli import main as relayout
from relayout.cli.demo_model import network
from relayout.fusion.partition import MODES
from relayout.ops.measure import Objective
from relayout.targets.target import TARGETS
from tests.suites.random_graphs import random_graph

RANDOM_GRAPHS = 60
BUDGET = "20"
"""Seconds of choosing. Where they run out the result depends on time, so it is not compared."""

TIMED_OUT = "time ran out"

Run: TypeAlias = tuple[str, float]
"""What came out, as a hash or an exit code, and the CPU seconds it took."""


@dataclass(frozen=True)
class Way:
    """One call of the command line."""

    name: str
    arguments: tuple[str, ...]
    suffix: str = ".onnx"


def ways() -> Iterator[Way]:
    for target in TARGETS:
        for objective in Objective:
            flags = ("--target", target, "--minimize", objective.value, "--budget", BUDGET)
            yield Way(f"optimize {target} {objective.value}", ("optimize", *flags))
    for mode in MODES:
        yield Way(f"fuse {mode}", ("fuse", "--mode", mode))
    yield Way("compile plain", ("compile", "--plain"), ".py")


def small_models() -> Iterator[tuple[str, onnx.ModelProto]]:
    yield "demo", network()
    for seed in range(RANDOM_GRAPHS):
        yield f"random_{seed}", random_graph(seed).model


def replayed(file: Path, only: Sequence[str] = ()) -> dict[str, Run]:
    """Every way of one model."""
    chosen = [way for way in ways() if not only or any(part in way.name for part in only)]
    return {way.name: _run(file, way) for way in chosen}


def _run(file: Path, way: Way) -> Run:
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / f"out{way.suffix}"
        command, *flags = way.arguments
        call = [command, str(file), "-o", str(output), "--no-verify", "--json", *flags]
        printed = io.StringIO()
        start = time.process_time()
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            code = relayout(call)
        seconds = time.process_time() - start
        written = sorted(Path(folder).iterdir())
        if '"optimal": false' in printed.getvalue():
            return TIMED_OUT, round(seconds, 3)
        digest = hashlib.sha256(b"".join(each.read_bytes() for each in written)).hexdigest()
        return (digest[:20] if written else f"exit code {code}"), round(seconds, 3)


def _differences(now: dict[str, Run], kept: dict[str, Run]) -> Iterator[str]:
    for name, run in now.items():
        if name not in kept:
            yield f"{name}: not recorded"
        elif _differs(kept[name], run):
            yield f"{name}: {kept[name][0]} -> {run[0]}"


def _differs(one: Run, other: Run) -> bool:
    return one[0] != other[0] and TIMED_OUT not in {one[0], other[0]}


def _files(options: argparse.Namespace, scratch: Path) -> Iterator[tuple[str, Path]]:
    for name, model in small_models():
        if not options.only or name in options.only:
            file = scratch / f"{name}.onnx"
            onnx.save(model, file)
            yield name, file
    if options.path is not None:
        for entry in entries(options.path, options.only, scratch, keep=True):
            yield entry.name, entry.file


def _all(options: argparse.Namespace) -> Iterator[tuple[str, dict[str, Run]]]:
    with (
        tempfile.TemporaryDirectory() as scratch,
        get_context("spawn").Pool(options.jobs, maxtasksperchild=8) as pool,
    ):
        tasks = ((name, file, options.ways) for name, file in _files(options, Path(scratch)))
        yield from pool.imap(_replayed, tasks)


def _replayed(task: tuple[str, Path, Sequence[str]]) -> tuple[str, dict[str, Run]]:
    name, file, only = task
    return name, replayed(file, only)


def _reported(
    results: Iterable[tuple[str, dict[str, Run]]], kept: dict[str, Run], record: Path | None
) -> dict[str, Run]:
    """Print a line a model, and every output that differs from what was kept."""
    found: dict[str, Run] = {}
    for name, runs in results:
        named = {f"{name}: {way}": run for way, run in runs.items()}
        seconds = sum(run[1] for run in runs.values())
        before = sum(kept[each][1] for each in named if each in kept)
        against = f", {before:.1f} s before" if kept else ""
        print(f"{name}: {len(runs)} outputs, {seconds:.1f} s{against}", flush=True)
        for line in _differences(named, kept) if kept else ():
            print(f"  {line}", flush=True)
        found |= named
        if record is not None:
            record.write_text(json.dumps(found, indent=0, sort_keys=True))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", type=Path, nargs="?")
    parser.add_argument("--only", nargs="*", default=[], help="names of models")
    parser.add_argument("--ways", nargs="*", default=[], help="parts of the names of ways")
    parser.add_argument("--record", type=Path)
    parser.add_argument("--against", type=Path)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    kept = json.loads(options.against.read_text()) if options.against else {}
    runs = {name: tuple(run) for name, run in kept.items()}
    found = _reported(_all(options), runs, options.record)
    differing = [name for name in found if name in kept and _differs(kept[name], found[name])]
    print(f"{len(found)} outputs, {sum(run[1] for run in found.values()):.0f} s of CPU time")
    if options.against:
        print(f"{len(differing)} differ; {len([n for n in found if n not in kept])} not recorded")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
