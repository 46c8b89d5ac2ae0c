"""relayout sweep: a command over many models, each in a process of its own."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from relayout.cli.amounts import at_least_one, gigabytes, part, seconds
from relayout.cli.codes import DONE, REFUSED
from relayout.cli.terminal import progress, show
from relayout.errors import RelayoutError

if TYPE_CHECKING:
    from relayout.sweep.executor import Executor
    from relayout.sweep.job import SweptCall
    from relayout.sweep.run import ModelSweep, SweepProgress
    from relayout.sweep.table import SweepRow

DESCRIPTION = (
    "Run a command over many models, each in a process of its own. A second run does only what is "
    "not done yet. Options of the command come after those of the sweep and are handed to it. "
    "Sources are files, globs, folders (all files *.onnx in them), @FILE for a list with a source "
    "in each line, or hf:OWNER/NAME for a repository of the Hugging Face hub."
)
EXAMPLE = "relayout sweep models/ -o swept/ --jobs 4"
SWEPT_NAMES = ("optimize", "fuse", "compile", "check", "bench")
EMITTED = ("slurm", "snakemake")
EMIT_HELP = "run nothing; write a job array or a workflow into OUT/ that runs the sweep in parts"
COPIES_HELP = "send models to the nodes of the cluster, which see other folders than this machine"
OWN = ("output", "report", "certificate", "json")
"""Options of commands that a sweep gives itself, or that name one file."""

SECONDS_BETWEEN_LINES = 30.0
"""How often progress is told where there is no terminal."""


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "sweep",
        help="run a command over many models",
        description=DESCRIPTION,
        allow_abbrev=False,
    )
    parser.add_argument("sources", metavar="SOURCE", nargs="+")
    parser.add_argument("-o", "--output", required=True, metavar="OUT/")
    parser.add_argument(
        "--command", dest="swept", choices=SWEPT_NAMES, default="optimize", help="what to run"
    )
    parser.add_argument(
        "--jobs", type=at_least_one, metavar="N", help="models at a time (default: cores)"
    )
    parser.add_argument(
        "--seconds", type=seconds, default=3600.0, metavar="S", help="what a model may take"
    )
    parser.add_argument(
        "--job-memory", type=gigabytes, metavar="8GB", help="what a process may use for a model"
    )
    parser.add_argument(
        "--part", type=part, metavar="1/8", help="only this part of the models, for clusters"
    )
    parser.add_argument(
        "--ray", metavar="ADDRESS", help="run on a Ray cluster ('auto', or host:port of its head)"
    )
    parser.add_argument("--ray-copies", action="store_true", help=COPIES_HELP)
    parser.add_argument("--emit", choices=EMITTED, help=EMIT_HELP)
    parser.add_argument("--json", action="store_true", help="print JSON")
    kept = "what is done is kept, and the same call goes on from there"
    parser.set_defaults(command=run, takes_more=True, if_interrupted=kept)


def run(options: argparse.Namespace) -> int:
    from relayout.sweep.run import ModelSweep, all_done

    asked = _asked(options.swept, options.more)
    sweep = ModelSweep.of(options.sources, Path(options.output), _call(options, asked))
    for own in {job.model.options for job in sweep.jobs if job.model.options}:
        _asked(options.swept, (*options.more, *own))
    if options.emit is not None:
        return _emit(options, sweep)
    if options.part is not None:
        sweep = sweep.part(options.part)
    executor = _executor(options, sweep)
    with _told() as tell:
        rows = sweep.run(executor, tell)
    written = sweep.write(rows) if options.part is None else []
    table = [str(path) for path in written]
    listed = [_brief(row) for row in rows]
    show(options, {"models": listed, "files": table}, _lines(listed, table))
    return DONE if all_done(rows) else REFUSED


def _executor(options: argparse.Namespace, sweep: ModelSweep) -> Executor:
    """What runs the jobs: a cluster if one is named, else processes of this machine."""
    from relayout.sweep.pool import Pool
    from relayout.sweep.ray_cluster import RayCluster

    if options.ray is None:
        if options.ray_copies:
            raise RelayoutError("--ray-copies is for a cluster: name one by --ray ADDRESS")
        return Pool(_size(options, sweep))
    return RayCluster(options.ray, options.ray_copies, options.jobs)


def _emit(options: argparse.Namespace, sweep: ModelSweep) -> int:
    """Write what runs the sweep on a cluster."""
    from relayout.sweep.emit import EMITTERS, ClusterSweep

    words = ["--command", options.swept, "--seconds", f"{options.seconds:g}"]
    if options.job_memory is not None:
        words += ["--job-memory", f"{options.job_memory:g}GB"]
    words += ["--jobs", str(_size(options, sweep))]
    cluster = ClusterSweep(sweep, (*words, *options.more), options.job_memory)
    path = EMITTERS[options.emit](cluster)
    show(options, {"models": [], "files": [str(path)]}, [f"wrote {path}"])
    return DONE


def _call(options: argparse.Namespace, asked: argparse.Namespace) -> SweptCall:
    from relayout.sweep.job import SWEPT, SweptCall

    memory = None if options.job_memory is None else int(options.job_memory * 1e9)
    command, output = SWEPT[options.swept], _output(options.swept, asked)
    return SweptCall(command, output, tuple(options.more), options.seconds, memory)


def _output(name: str, asked: argparse.Namespace) -> str | None:
    """The name of the file that the command writes for a model."""
    if name in {"optimize", "fuse"}:
        return "model.onnx"
    if name != "compile":
        return None
    from relayout.backends.registry import BACKENDS, TORCH_BACKEND

    backend = BACKENDS[asked.target] if asked.target else TORCH_BACKEND
    return f"model{backend.suffix}"


def _asked(name: str, given: Sequence[str]) -> argparse.Namespace:
    """What the command makes of options; what it would refuse is refused before anything runs."""
    from relayout.cli import command_parser

    place = ["-o", "OUT"] if name == "compile" else []
    asked = command_parser().parse_args([name, "IN.onnx", *place, *given])
    plain = command_parser().parse_args([name, "IN.onnx", *place, *_needed(name, asked)])
    for option in OWN:
        if getattr(asked, option, None) != getattr(plain, option, None):
            raise RelayoutError(f"a sweep sets --{option} for each model itself; leave it out")
    return asked


def _needed(name: str, asked: argparse.Namespace) -> list[str]:
    return ["--max-transposes", str(asked.max_transposes)] if name == "check" else []


def _size(options: argparse.Namespace, sweep: ModelSweep) -> int:
    """How many models at a time: one where times are measured, so that nothing disturbs them."""
    if sweep.call.is_timed:
        if options.jobs not in {None, 1}:
            raise RelayoutError("times are measured, so nothing may run beside: leave out --jobs")
        return 1
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return max(1, options.jobs or cores or 1)


@contextmanager
def _told() -> Iterator[Callable[[SweepProgress], None]]:
    """SweepProgress on a terminal, or now and then as a line."""
    last = time.monotonic()

    with progress() as stage:

        def tell(state: SweepProgress) -> None:
            nonlocal last
            if sys.stderr.isatty():
                stage(state.text())
            elif time.monotonic() - last > SECONDS_BETWEEN_LINES:
                last = time.monotonic()
                sys.stderr.write(f"relayout: {state.text()}\n")

        yield tell


def _brief(row: SweepRow) -> SweepRow:
    names = ("name", "status", "code", "seconds", "error")
    return {name: row[name] for name in names}


def _lines(models: Sequence[dict[str, Any]], files: Sequence[str]) -> Iterator[str]:
    from collections import Counter

    from rich.markup import escape

    from relayout.report.text import plural

    for model in models:
        if model["status"] != "done":
            yield escape(f"{model['name']}: {model['status']}: {model['error']}")
    counts = Counter(model["status"] for model in models)
    told = ", ".join(f"{number} {status}" for status, number in sorted(counts.items()))
    yield f"{plural(len(models), 'model')}: {told or 'nothing to do'}"
    if files:
        yield escape(f"wrote {' and '.join(files)}")
    if files and not any(name.endswith(".parquet") for name in files):
        yield escape("no table, which needs pyarrow: pip install 'relayout[sweep]'")
