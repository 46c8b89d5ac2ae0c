"""The command line: one file a command; the only code that prints.

Exit codes are listed in `codes.py`.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, TextIO

from relayout import __version__
from relayout.cli import (
    bench,
    calibrate,
    check,
    compare,
    compile,  # noqa: A004 - the word for it
    completion,
    demo,
    explain,
    fuse,
    inspect,
    optimize,
    run,
    sweep,
    verify,
    verify_certificate,
)
from relayout.cli.codes import BAD_INPUT, CODES, DONE, FAULT
from relayout.cli.names import ListedHelp, NameOption
from relayout.cli.places import check_places
from relayout.cli.signals import code_of, ending_on_signals
from relayout.cli.streams import printing, report_stream, silence
from relayout.cli.terminal import plain_warnings
from relayout.errors import RelayoutError, near
from relayout.graph.collector import leave_garbage

OUT_OF_MEMORY = "there is not enough memory for this model"

DEBUG = "RELAYOUT_DEBUG"
"""The environment variable that lets a fault of our own show its traceback."""

COMMANDS = (
    *(optimize, inspect, explain, compare, fuse, compile, run, bench, calibrate),
    *(verify, check, sweep, verify_certificate, demo, completion),
)


class UsageError(SystemExit):
    """The end of a call that is not understood."""

    def __init__(self, message: str) -> None:
        super().__init__(BAD_INPUT)
        self.message = message


class Parser(argparse.ArgumentParser):
    """Reports in one line what is wrong with a call; its help lists what options can name."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**{"formatter_class": ListedHelp, **settings})

    def format_help(self) -> str:
        for action in self._actions:
            if isinstance(action, NameOption):
                action.list_names()
        return super().format_help()

    def known_options(self) -> list[str]:
        return [option for action in self._actions for option in action.option_strings]

    def error(self, message: str) -> NoReturn:
        sys.stderr.write(f"{self.prog}: {message}; see '{self.prog} --help'\n")
        raise UsageError(message)


def main(arguments: Sequence[str] | None = None) -> int:
    leave_garbage()
    try:
        options = options_of(arguments)
    except UsageError as error:
        if "--json" in (sys.argv[1:] if arguments is None else arguments):
            _print_failure(sys.stdout, None, BAD_INPUT, error.message)
        raise
    command: Callable[[argparse.Namespace], int] = options.command
    try:
        with ending_on_signals(), plain_warnings():
            check_places(options)
            return command(options)
    except RelayoutError as error:
        return _fail(options, BAD_INPUT, _printable(str(error)))
    except BrokenPipeError:
        silence(sys.stdout)
        return DONE
    except KeyboardInterrupt as interrupt:
        kept = getattr(options, "if_interrupted", "nothing was written")
        return _fail(options, code_of(interrupt), f"interrupted; {kept}")
    except MemoryError:
        return _fail(options, BAD_INPUT, f"{OUT_OF_MEMORY}; nothing was written")
    except OSError as error:
        return _fail(options, BAD_INPUT, f"the system refuses: {error}; nothing was written")
    except Exception as error:
        return _fault(options, error)


def options_of(arguments: Sequence[str] | None) -> argparse.Namespace:
    """What was asked for; only a sweep takes options that it does not know, for what it runs."""
    parser = command_parser()
    options, more = parser.parse_known_args(arguments)
    if more and not getattr(options, "takes_more", False):
        _refuse(options.parser, more)
    options.more = more
    return options


def _refuse(asked: Parser, more: Sequence[str]) -> NoReturn:
    """Refuse what a command does not know, with options of it that are called alike."""
    wrong = next((each for each in more if each.startswith("-")), more[0])
    hint = near(wrong.partition("=")[0], asked.known_options())
    asked.error(f"unrecognized arguments: {' '.join(more)}{hint}")


def _fault(options: argparse.Namespace, error: Exception) -> int:
    """Report an error that is no one's but ours."""
    if DEBUG in os.environ:
        raise error
    kind = type(error).__name__
    what = f"a fault of relayout's own ({kind}: {_one_line(error)}); nothing was written. "
    return _fail(options, FAULT, f"{what}{DEBUG}=1 shows where; please report it")


def _fail(options: argparse.Namespace, code: int, message: str) -> int:
    """Report in one line why a command ends, and in JSON too where that was asked for."""
    sys.stderr.write(f"relayout: {message}\n")
    if getattr(options, "json", False):
        stream = report_stream(getattr(options, "output", None))
        _print_failure(stream, options.name, code, message)
    return code


def _print_failure(stream: TextIO, name: str | None, code: int, message: str) -> None:
    from relayout.report.machine import failure

    with printing(stream):
        print(json.dumps(failure(name, code, message), indent=2), file=stream)


def _one_line(error: Exception) -> str:
    return _printable(" ".join(str(error).split())[:200])


def _printable(text: str) -> str:
    """A text that may hold names out of a file, which may hold anything."""
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)


def _codes_text() -> str:
    listed = "; ".join(f"{code} {meaning}" for code, meaning in CODES.items())
    return f"exit codes: {listed}; 128 + n: ended by signal n"


def command_parser() -> Parser:
    parser = Parser(
        prog="relayout", description="The layout compiler for ONNX models.", epilog=_codes_text()
    )
    parser.add_argument("--version", action="version", version=f"relayout {__version__}")
    commands = parser.add_subparsers(
        title="commands", metavar="COMMAND", required=True, dest="name"
    )
    for command in COMMANDS:
        command.add_parser(commands)
        *_, added = commands.choices.values()
        added.epilog = f"example: {command.EXAMPLE}"
        added.set_defaults(parser=added)
    return parser
