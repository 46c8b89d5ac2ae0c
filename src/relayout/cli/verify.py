"""relayout verify: whether two models compute the same."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from relayout.cli.codes import DONE, REFUSED
from relayout.cli.terminal import add_numbers, numeric_options, progress, show
from relayout.errors import RelayoutError

if TYPE_CHECKING:
    from rich.console import RenderableType

    from relayout.verify.equivalence import Equivalence

SUMMARY = "find out whether two models compute the same, whatever made the second one"
DESCRIPTION = (
    "Prove, output by output, that both models compute the same for every input; compute both over "
    "a prime field, which is exact; and run both on drawn inputs. An output is 'identical' or "
    "'equal modulo ledger' if it is proved, 'tested' if it is equal in all runs, 'refuted' if an "
    "element differs."
)


def add_parser(commands: Any) -> None:
    parser = commands.add_parser("verify", help=SUMMARY, description=DESCRIPTION)
    parser.add_argument("before", metavar="A.onnx")
    parser.add_argument("after", metavar="B.onnx")
    add_numbers(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(command=run)


def run(options: argparse.Namespace) -> int:
    from relayout import api

    for path in (options.before, options.after):
        _check_readable(Path(path))
    with progress() as stage:
        stage("proving and comparing")
        found = api.verify_models(options.before, options.after, numeric_options(options))
    show(options, found.record(), _lines(found))
    return DONE if found.equal else REFUSED


def _check_readable(path: Path) -> None:
    from relayout.verify.interface import UnreadableModelError, interface_of

    try:
        interface_of(path)
    except UnreadableModelError as error:
        raise RelayoutError(str(error)) from None


def _lines(found: Equivalence) -> Iterator[RenderableType]:
    from rich.markup import escape

    from relayout.report.text import plural

    for one in found.outputs:
        yield escape(f"{one.name}: {one.finding}" + f", {one.reason}" * bool(one.reason))
    fields = found.verdict.field_run
    if fields:
        alike = [name for name, status in fields.items() if status == "equal"]
        yield f"over a prime field: {len(alike)} of {plural(len(fields), 'output')} equal"
        others = {status for name, status in fields.items() if name not in alike}
        yield from (escape(f"  {status}") for status in sorted(others))
    yield escape(found.verdict.summary())
