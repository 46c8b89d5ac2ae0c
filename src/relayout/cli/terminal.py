"""What all commands share: common options, progress, and the way answers are shown."""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO

from relayout.cli.names import NameOption, given, objectives, targets
from relayout.cli.streams import printing, report_stream

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.status import Status

    from relayout.verify.verdict import NumericOptions


def add_numbers(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--tolerance", type=float, help="largest error relative to the scale of an element"
    )
    parser.add_argument(
        "--memory", type=float, metavar="GB", help="most memory that verifying may use"
    )
    parser.add_argument(
        "--shape",
        action="append",
        default=[],
        type=_shape,
        metavar="NAME=1,3,224,224",
        help="the shape of an input, for verifying",
    )
    add_dims(parser)


def add_dims(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--dim",
        action="append",
        default=[],
        type=_dim,
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


def _shape(text: str) -> tuple[str, tuple[int, ...]]:
    name, _, lengths = text.rpartition("=")
    try:
        shape = tuple(int(length) for length in lengths.split(",") if length)
    except ValueError:
        shape = (-1,)
    if not name or any(length < 0 for length in shape):
        raise argparse.ArgumentTypeError(f"'{text}' is not of the form NAME=1,3,224,224")
    return name, shape


def _dim(text: str) -> tuple[str, int]:
    name, _, length = text.rpartition("=")
    if not name or not length.isdecimal():
        raise argparse.ArgumentTypeError(f"'{text}' is not of the form NAME=8")
    return name, int(length)


def count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"'{text}' is not a count")
    return int(text)


def show(
    options: argparse.Namespace, record: dict[str, Any], lines: Iterable[RenderableType]
) -> None:
    stream = report_stream(getattr(options, "output", None))
    with printing(stream):
        if options.json:
            print(json.dumps(record, indent=2), file=stream)
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
    """What is being done now, on a terminal's error stream."""

    def __init__(self, status: Status) -> None:
        self._status = status

    def __call__(self, stage: str) -> None:
        self._status.update(f"{stage} ...")

    def end(self) -> None:
        """Leave the terminal to what is printed next."""
        self._status.stop()


@contextmanager
def progress() -> Iterator[Progress]:
    with _console(sys.stderr).status("starting") as status:
        yield Progress(status)


@contextmanager
def plain_warnings() -> Iterator[None]:
    """Warnings as notes on the error stream, each once, without the code that they come from."""
    with warnings.catch_warnings():
        warnings.showwarning = _note
        yield


def _note(message: Warning | str, *_origin: object, **_more: object) -> None:
    sys.stderr.write(f"relayout: note: {message}\n")


def add_choosing(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--target", action=NameOption, named=targets, about=TARGET_HELP)
    parser.add_argument("--keep-nchw", nargs="+", default=[], metavar="NAME", help=KEEP_HELP)
    parser.add_argument("--minimize", action=NameOption, named=objectives, about=GOAL_HELP)
    parser.add_argument("--einsum", action=argparse.BooleanOptionalAction, help=EINSUM_HELP)
    parser.add_argument("--budget", type=float, default=10.0, metavar="SECONDS", help=BUDGET_HELP)
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


def add_form(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--all", action="store_true", help="list every Transpose and every attempt")
    parser.add_argument("--json", action="store_true", help="print JSON")


DEFAULTS_HELP = "make constants of inputs that have a default, which removes them from the inputs"
EINSUM_HELP = (
    "whether products may be stated as Einsum where that saves Transposes (default: with "
    "--minimize count, for standard operators only); what runtimes copy inside of it counts as "
    "bytes moved"
)
GOAL_HELP = "what to make least"
BUDGET_HELP = "seconds of choosing layouts, all attempts together (default 10)"
TARGET_HELP = "what the model is to run on"
KEEP_HELP = "nodes that stay as they are: a name (* and ? match), op:LRN, rank:3 or device:cpu"
