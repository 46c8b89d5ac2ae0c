"""The command line: one file a command; the only code that prints.

Exit codes are listed in `codes.py`.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from relayout import __version__
from relayout.cli import (
    bench,
    calibrate,
    check,
    compare,
    compile,  # noqa: A004 - the word for it
    demo,
    fuse,
    inspect,
    optimize,
    run,
    verify,
    verify_certificate,
)
from relayout.cli.codes import BAD_INPUT, CODES, DONE, FAULT
from relayout.cli.names import ListedHelp, NameOption
from relayout.cli.signals import code_of, ending_on_signals
from relayout.cli.streams import silence
from relayout.cli.terminal import plain_warnings
from relayout.errors import RelayoutError
from relayout.graph.collector import leave_garbage

OUT_OF_MEMORY = "there is not enough memory for this model"

DEBUG = "RELAYOUT_DEBUG"
"""The environment variable that lets a fault of our own show its traceback."""

COMMANDS = (
    *(optimize, inspect, compare, fuse, compile, run, bench, calibrate),
    *(verify, check, verify_certificate, demo),
)


class Parser(argparse.ArgumentParser):
    """Reports in one line what is wrong with a call; its help lists what options can name."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**{"formatter_class": ListedHelp, **settings})

    def format_help(self) -> str:
        for action in self._actions:
            if isinstance(action, NameOption):
                action.list_names()
        return super().format_help()

    def error(self, message: str) -> NoReturn:
        self.exit(BAD_INPUT, f"{self.prog}: {message}; see '{self.prog} --help'\n")


def main(arguments: Sequence[str] | None = None) -> int:
    leave_garbage()
    options = _parser().parse_args(arguments)
    command: Callable[[argparse.Namespace], int] = options.command
    try:
        with ending_on_signals(), plain_warnings():
            return command(options)
    except RelayoutError as error:
        sys.stderr.write(f"relayout: {_printable(str(error))}\n")
        return BAD_INPUT
    except BrokenPipeError:
        silence(sys.stdout)
        return DONE
    except KeyboardInterrupt as interrupt:
        sys.stderr.write("relayout: interrupted; nothing was written\n")
        return code_of(interrupt)
    except MemoryError:
        sys.stderr.write(f"relayout: {OUT_OF_MEMORY}; nothing was written\n")
        return BAD_INPUT
    except OSError as error:
        sys.stderr.write(f"relayout: the system refuses: {error}; nothing was written\n")
        return BAD_INPUT
    except Exception as error:
        if DEBUG in os.environ:
            raise
        kind = type(error).__name__
        sys.stderr.write(f"relayout: a fault of relayout's own ({kind}: {_one_line(error)}); ")
        sys.stderr.write(f"nothing was written. {DEBUG}=1 shows where; please report it\n")
        return FAULT


def _one_line(error: Exception) -> str:
    return _printable(" ".join(str(error).split())[:200])


def _printable(text: str) -> str:
    """A text that may hold names out of a file, which may hold anything."""
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)


def _codes_text() -> str:
    listed = "; ".join(f"{code} {meaning}" for code, meaning in CODES.items())
    return f"exit codes: {listed}; 128 + n: ended by signal n"


def _parser() -> Parser:
    parser = Parser(
        prog="relayout", description="The layout compiler for ONNX models.", epilog=_codes_text()
    )
    parser.add_argument("--version", action="version", version=f"relayout {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in COMMANDS:
        command.add_parser(commands)
    return parser
