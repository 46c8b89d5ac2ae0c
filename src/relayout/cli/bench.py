"""relayout bench: the ways to run a model that are installed, side by side."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from relayout.cli.amounts import at_least_one, seconds
from relayout.cli.codes import DONE, REFUSED
from relayout.cli.compile import add_device
from relayout.cli.names import NameOption, backends_or_auto
from relayout.cli.streams import model_of
from relayout.cli.terminal import (
    add_numbers,
    add_report,
    add_trace,
    numeric_options,
    progress,
    show,
    traced,
    write_report,
)

if TYPE_CHECKING:
    from relayout.backends.fastest.ranking import Ranking, TimedWay
    from relayout.backends.torch.region_ends import RegionEnds

DESCRIPTION = (
    "Build a model for every backend that is installed, or for one, time what they made of it in "
    "turns in a process of its own, on one thread by the time on its core and on more by the "
    "clock, and compare the numbers of the fastest with the model's; print the times and how many "
    "times as fast each is as the given model in ONNX Runtime. What was measured is kept and "
    "printed again the next time. On CUDA: torch with fused kernels and without."
)
EXAMPLE = "relayout bench in.onnx --dim N=8 --threads 1"


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "bench", help="time a model on the installed runtimes", description=DESCRIPTION
    )
    parser.add_argument("model", metavar="IN.onnx")
    parser.add_argument("--backend", action=NameOption, named=backends_or_auto, about=BACKEND_HELP)
    parser.add_argument("--threads", type=at_least_one, metavar="N", help=THREADS_HELP)
    parser.add_argument(
        "--seconds", type=seconds, default=10.0, metavar="S", help="about the most for turns of all"
    )
    parser.add_argument("--again", action="store_true", help="measure again what is known")
    parser.add_argument("--rounds", type=at_least_one, default=20, metavar="N", help="runs on CUDA")
    parser.add_argument("--why", action="store_true", help=WHY_HELP)
    add_device(parser)
    add_numbers(parser)
    add_report(parser)
    add_trace(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(command=run)


THREADS_HELP = "threads (default: one a core)"
BACKEND_HELP = "who is to run it, auto for all that are installed"
WHY_HELP = "name the operators at which regions of C++ kernels end in torch, and what they take"


def run(options: argparse.Namespace) -> int:
    return _on_cuda(options) if options.device == "cuda" else _ranked(options)


def _ranked(options: argparse.Namespace) -> int:
    with traced(options) as tracks, progress() as stage:
        stage("reading")
        from relayout.backends.compile import AUTO, asked_backends
        from relayout.backends.fastest.compiling import fastest_of
        from relayout.backends.options import CompileOptions
        from relayout.optimizer.model_pages import timing_page

        numbers = numeric_options(options)
        settings = CompileOptions(
            dtype=options.dtype,
            dims=numbers.dims,
            shapes=numbers.shapes,
            inputs=numbers,
            threads=options.threads,
        )
        asked = asked_backends(options.backend or AUTO)
        limits = {"again": options.again, "seconds": options.seconds}
        with fastest_of(asked, model_of(options.model), settings, stage, **limits) as found:
            ranking, chosen = found.ranking, found.way
        ends = _region_ends(options, ranking, stage) if options.why else None
        tracks["steps"] = [*stage.spans()]
    spans = [(str(e.way), e.median, e.low, e.high) for e in ranking.open if e.median]
    if spans:
        write_report(options, lambda: timing_page(Path(options.model), spans))
    times = [each.to_json() for each in ranking.ways]
    record = {**ranking.to_json(), "times": times, "chosen": str(chosen) if chosen else None}
    record["verdict"] = _verdict(ranking, chosen)
    del record["ways"]
    if ends is not None:
        record["region_ends"] = [each.to_json() for each in ends.ends]
    show(options, record, [*_lines(ranking, chosen), *_why(ends)])
    return DONE if chosen is not None else REFUSED


def _region_ends(
    options: argparse.Namespace, ranking: Ranking, stage: Callable[[str], None]
) -> RegionEnds:
    stage("looking for the ends of regions")
    from relayout.backends.torch.region_ends import region_ends
    from relayout.verify.interface import interface_of

    dims = dict(options.dim)
    for port in interface_of(Path(options.model)).required:
        if port.name in ranking.shapes:
            lengths = ranking.shapes[port.name]
            dims |= {name: lengths[axis] for axis, name in port.free.items()}
    return region_ends(Path(options.model), dims)


def _why(ends: RegionEnds | None) -> Iterator[str]:
    if ends is None:
        return
    held = f"{ends.inside} of {ends.nodes} nodes"
    yield f"torch: {ends.regions} regions of C++ kernels with {held}; they end at"
    for each in ends.ends:
        yield f"  {each.operator}: {each.nodes} nodes, {each.milliseconds:.3f} ms in torch"


def _lines(ranking: Ranking, chosen: object) -> Iterator[str]:
    inputs = ", ".join(f"{name} {list(shape)}" for name, shape in ranking.shapes.items())
    clock = "1 thread, time on its core" if ranking.threads == 1 else f"{ranking.threads} threads"
    yield f"{clock}; {inputs or 'lengths as declared'}"
    width = max(len(str(each.way)) for each in ranking.ways)
    for each in ranking.ways:
        yield f"{each.way!s:{width}}  {_figures(each, ranking.line)}"
    yield ", ".join(f"{name} {version}" for name, version in ranking.versions.items())
    if ranking.reason:
        yield f"not timed: {ranking.reason}"
    if ranking.is_noisy:
        yield "the machine is busy: times spread too much to be kept"
    yield _verdict(ranking, chosen)


def _verdict(ranking: Ranking, chosen: object) -> str:
    taken = next((each for each in ranking.ways if each.way == chosen), None)
    return f"fastest: {taken.way}; {taken.verdict}" if taken else "nothing runs the model"


def _figures(each: TimedWay, line: str) -> str:
    if each.refusal:
        return f"left out: {each.refusal}"
    if not each.median:
        return "not timed"
    text = f"{each.median:9.3f} ms ({each.low:.3f} to {each.high:.3f})"
    if str(each.way) == line:
        return f"{text}, what the others are compared with"
    if each.ratio is None:
        return text
    median, low, high = each.ratio
    return f"{text}, {median:.2f} times as fast ({low:.2f} to {high:.2f})"


def _on_cuda(options: argparse.Namespace) -> int:
    with traced(options) as tracks, progress() as stage:
        stage("reading")
        from relayout.backends.drawing import drawn_feeds
        from relayout.backends.torch.timing import time_model
        from relayout.optimizer.model_pages import timing_page

        path = Path(options.model)
        feeds = drawn_feeds(path, numeric_options(options))
        times = time_model(
            path,
            feeds,
            device=options.device,
            dtype=options.dtype,
            rounds=options.rounds,
            dims=dict(options.dim),
            stage=stage,
            ran=lambda way, span: tracks.setdefault(way, []).append(span),
        )
        tracks["steps"] = [*stage.spans()]
    spans = [(each.way, each.median, each.low, each.high) for each in times]
    write_report(options, lambda: timing_page(path, spans))
    own = times[0].median
    lines = [
        f"{each.way:22} {each.median:9.3f} ms ({each.low:.3f} to {each.high:.3f}), "
        f"{each.median / own:.2f} times as long as relayout"
        for each in times
    ]
    show(options, {"times": [each.to_json() for each in times]}, lines)
    return DONE
