"""Standard input and output: where models come from and go to that are given as '-'."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from relayout.errors import RelayoutError

if TYPE_CHECKING:
    from relayout.graph.io.destination import Output

STANDARD = "-"
LARGEST = 2**31 - 1
"""No larger model can come as one message."""


def model_of(given: str) -> str | bytes:
    """The path of a model, or what comes through standard input."""
    if given != STANDARD:
        return given
    if sys.stdin.isatty():
        raise RelayoutError("standard input is a terminal; redirect a model to it, or give a path")
    # One byte more than allowed tells what reads it that there was more.
    return sys.stdin.buffer.read(LARGEST + 1)


def output_of(given: str | None) -> Output | None:
    """The path that a model goes to, or standard output."""
    if given is None or not leads_to_standard_output(given):
        return given
    if sys.stdout.isatty():
        raise RelayoutError("standard output is a terminal; redirect it, or give a path")
    return sys.stdout.buffer


def leads_to_standard_output(given: str) -> bool:
    """Whether a place is '-', or a name of the pipe or the file that this process prints to."""
    if given == STANDARD:
        return True
    try:
        place, printed = Path(given).stat(), os.fstat(sys.stdout.fileno())
    except (OSError, ValueError):
        return False
    return os.path.samestat(place, printed) and not stat.S_ISCHR(place.st_mode)


def report_stream(output: str | None) -> TextIO:
    """Where a report is printed: beside a model, not into it."""
    into_model = output is not None and leads_to_standard_output(output)
    return sys.stderr if into_model else sys.stdout


@contextmanager
def printing(stream: TextIO) -> Iterator[None]:
    """A report that no one reads any more is no failure; one that cannot be printed is."""
    try:
        yield
        stream.flush()
    except BrokenPipeError:
        silence(stream)
    except OSError as error:
        silence(stream)
        raise RelayoutError(f"the report cannot be printed: {error.strerror}") from None


def silence(stream: TextIO) -> None:
    """Let what is still to be flushed go nowhere, so that it fails no second time."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
