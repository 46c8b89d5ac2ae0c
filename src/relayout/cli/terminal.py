"""What all commands share: common options, progress, and the way answers are shown."""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Protocol, TextIO

from relayout.cli.amounts import gigabytes, named_length, named_shape, seconds, tolerance
from relayout.cli.names import NameOption, given, objectives, targets
from relayout.cli.streams import printing, report_stream

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.progress import Progress as Bar

    from relayout.report.html.page import Page
    from relayout.report.trace import Span
    from relayout.verify.verdict import NumericOptions


class Options(Protocol):
    """What options are added to: a command, or a group of its options."""

    def add_argument(self, *names: str, **settings: Any) -> argparse.Action: ...


def add_numbers(parser: Options) -> None:
    parser.add_argument(
        "--tolerance", type=tolerance, help="largest error relative to the scale of an element"
    )
    parser.add_argument("--memory", type=gigabytes, metavar="2GB", help=MEMORY_HELP)
    parser.add_argument(
        "--shape",
        action="append",
        default=[],
        type=named_shape,
        metavar="NAME=1,3,224,224",
        help="the shape of an input, for verifying",
    )
    add_dims(parser)


def add_dims(parser: Options) -> None:
    parser.add_argument(
        "--dim",
        action="append",
        default=[],
        type=named_length,
        metavar="NAME=8",
        help="the length of a symbolic dimension",
    )


def numeric_options(options: argparse.Namespace) -> NumericOptions:
    from relayout.verify.verdict import NumericOptions

    return NumericOptions(
        dims=dict(options.dim),
        shapes=dict(options.shape),
        tolerance=options.tolerance,
        memory=options.memory,
    )


def show(
    options: argparse.Namespace, record: dict[str, Any], lines: Iterable[RenderableType]
) -> None:
    stream = report_stream(getattr(options, "output", None))
    with printing(stream):
        if options.json:
            from relayout.report.machine import answer

            print(json.dumps(answer(options.name, record), indent=2), file=stream)
            return
        console = _console(stream)
        for line in lines:
            # A line stays one line, for those who search or cut it; tables fit the terminal.
            console.print(line, highlight=False, soft_wrap=isinstance(line, str))


def _console(stream: TextIO) -> Console:
    from rich.console import Console

    class ReportConsole(Console):
        """Leaves it to its caller what becomes of a pipe that no one reads from."""

        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    return ReportConsole(file=stream, soft_wrap=False)


class Progress:
    """What is being done now, in which step and for how long, on a terminal's error stream."""

    def __init__(self, bar: Bar | None = None) -> None:
        self._bar = bar
        self._begun: list[tuple[str, float]] = []
        if bar is not None:
            bar.add_task("starting")

    def __call__(self, stage: str) -> None:
        self._begun.append((stage, time.perf_counter()))
        if self._bar is not None:
            (task,) = self._bar.task_ids
            self._bar.update(task, description=f"step {len(self._begun)}: {stage}")

    def spans(self) -> Iterator[Span]:
        """What was done up to now; a step lasts until the next one begins."""
        from relayout.report.trace import Span

        for (stage, begun), (_, end) in pairwise([*self._begun, ("", time.perf_counter())]):
            yield Span(stage, begun, end - begun)

    def end(self) -> None:
        """Leave the terminal to what is printed next."""
        if self._bar is not None:
            self._bar.stop()


@contextmanager
def progress() -> Iterator[Progress]:
    """Without a terminal nothing is shown, and what would show it is not imported."""
    if not sys.stderr.isatty():
        yield Progress()
        return
    from rich.progress import Progress as Bar
    from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    console = _console(sys.stderr)
    with Bar(*columns, console=console, transient=True) as bar:
        yield Progress(bar)


@contextmanager
def plain_warnings() -> Iterator[None]:
    """Warnings as notes on the error stream, each once, without the code that they come from."""
    with warnings.catch_warnings():
        warnings.showwarning = _note
        yield


def _note(message: Warning | str, *_origin: object, **_more: object) -> None:
    sys.stderr.write(f"relayout: note: {message}\n")


def add_choosing(parser: Options) -> None:
    parser.add_argument("--target", action=NameOption, named=targets, about=TARGET_HELP)
    parser.add_argument("--keep-nchw", action="append", default=[], metavar="NAME", help=KEEP_HELP)
    parser.add_argument("--minimize", action=NameOption, named=objectives, about=GOAL_HELP)
    parser.add_argument("--einsum", action=argparse.BooleanOptionalAction, help=EINSUM_HELP)
    parser.add_argument("--budget", type=seconds, default=10.0, metavar="SECONDS", help=BUDGET_HELP)
    parser.add_argument("--fix-defaults", action="store_true", help=DEFAULTS_HELP)


def choosing(options: argparse.Namespace) -> dict[str, Any]:
    """What `add_choosing` has read, by the names that the API gives it."""
    return {
        **given(options, "target", "minimize"),
        "keep": options.keep_nchw,
        "einsum": options.einsum,
        "budget": options.budget,
        "fix_defaults": options.fix_defaults,
    }


def add_report(parser: Options) -> None:
    parser.add_argument("--report", metavar="R.html", help=REPORT_HELP)
    parser.add_argument("--model-explorer", metavar="DIR", help=EXPLORER_HELP)


def write_report(options: argparse.Namespace, page: Callable[[], Page]) -> None:
    """Write the page and the graphs that were asked for, if any were."""
    from relayout.graph.io.destination import write_documents
    from relayout.optimizer.report_files import ReportFiles

    files = ReportFiles.of(options.report, options.model_explorer)
    if not files.are_asked:
        return
    with TemporaryDirectory(prefix="relayout-") as scratch:
        write_documents([*files.documents(page())], Path(scratch))


REPORT_HELP = "write a page for browsers, with the graph, in one file"
EXPLORER_HELP = "write the graph, or both, as files for Model Explorer into this folder"


def add_trace(parser: Options) -> None:
    parser.add_argument("--trace", metavar="T.json", help=TRACE_HELP)


@contextmanager
def traced(options: argparse.Namespace) -> Iterator[dict[str, list[Span]]]:
    """Spans by track, to be filled, and written where a trace was asked for."""
    from relayout.graph.io.destination import Destination, Document, write_documents
    from relayout.report.trace import trace

    place = None if options.trace is None else Destination.of(options.trace)
    tracks: dict[str, list[Span]] = {}
    yield tracks
    if place is not None:
        with TemporaryDirectory(prefix="relayout-") as scratch:
            content = json.dumps(trace(tracks)).encode()
            write_documents([Document(place, content)], Path(scratch))


TRACE_HELP = "write what took how long, as trace events, which Perfetto opens"


def add_form(parser: Options) -> None:
    parser.add_argument("--all", action="store_true", help="list every Transpose and every attempt")
    parser.add_argument("--json", action="store_true", help="print JSON")


MEMORY_HELP = (
    "most memory that verifying may use; models that take more are verified by proof alone"
)
DEFAULTS_HELP = "make constants of inputs that have a default, which removes them from the inputs"
EINSUM_HELP = (
    "whether products may be stated as Einsum where that saves Transposes (default: with "
    "--minimize count, for standard operators only); what runtimes copy inside of it counts as "
    "bytes moved"
)
GOAL_HELP = "what to make least; by default time on a target with prices, else bytes"
PRICES_HELP = "a table of prices in place of the one that the target has"
BUDGET_HELP = "seconds of choosing layouts, all attempts together (default 10)"
TARGET_HELP = "what the model is to run on"
KEEP_HELP = (
    "nodes that stay as they are: a name (* and ? match), op:LRN, rank:3 or device:cpu (may be "
    "repeated)"
)
