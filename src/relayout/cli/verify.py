"""relayout verify: whether two models compute the same."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from relayout.cli.codes import DONE, REFUSED
from relayout.cli.terminal import (
    add_numbers,
    add_report,
    numeric_options,
    progress,
    show,
    write_report,
)

if TYPE_CHECKING:
    from rich.console import RenderableType

    from relayout.verify.equivalence import Equivalence
    from relayout.verify.reduction.reduce import ReducedPair

SUMMARY = "find out whether two models compute the same, whatever made the second one"
DESCRIPTION = (
    "Prove, output by output, that both models compute the same for every input; compute both over "
    "a prime field, which is exact; and run both on drawn inputs. An output is 'identical' or "
    "'equal modulo ledger' if it is proved, 'tested' if it is equal in all runs, 'refuted' if an "
    "element differs."
)
EXAMPLE = "relayout verify a.onnx b.onnx"


def add_parser(commands: Any) -> None:
    parser = commands.add_parser("verify", help=SUMMARY, description=DESCRIPTION)
    parser.add_argument("before", metavar="A.onnx")
    parser.add_argument("after", metavar="B.onnx")
    add_numbers(parser)
    add_report(parser)
    parser.add_argument(
        "--reduce",
        metavar="DIR",
        type=Path,
        help="if runs show a difference, write the smallest parts of both models that still differ",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(command=run)


def run(options: argparse.Namespace) -> int:
    from rich.markup import escape

    from relayout import api
    from relayout.optimizer.model_pages import pair_page

    with progress() as stage:
        stage("proving and comparing")
        found = api.verify_models(options.before, options.after, numeric_options(options))
        write_report(options, lambda: pair_page(Path(options.before), Path(options.after), found))
        parts = None
        if options.reduce is not None and not found.equal:
            stage("making the difference smaller")
            parts = _reduced(options)
    record = found.record()
    if parts is not None:
        record["reduced"] = [str(parts.before), str(parts.after)]
    show(options, record, [*_lines(found), *([] if parts is None else [escape(parts.summary())])])
    return DONE if found.equal else REFUSED


def _reduced(options: argparse.Namespace) -> ReducedPair | None:
    from relayout.verify.reduction.reduce import reduce_pair

    files = Path(options.before), Path(options.after)
    return reduce_pair(*files, options.reduce, numeric_options(options))


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
