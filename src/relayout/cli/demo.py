"""relayout demo: the whole story on a small model."""

from __future__ import annotations

import argparse
from typing import Any

from relayout.cli.codes import DONE, REFUSED
from relayout.cli.terminal import show

SUMMARY = "the whole story on a small model made on the spot"
DESCRIPTION = "Make a small network as TensorFlow exporters write it, and optimise it."
EXAMPLE = "relayout demo -o demo.onnx"


def add_parser(commands: Any) -> None:
    parser = commands.add_parser("demo", help=SUMMARY, description=DESCRIPTION)
    parser.add_argument("-o", "--output", metavar="OUT.onnx", help="keep the optimised model")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(command=run)


def run(options: argparse.Namespace) -> int:
    from relayout.cli.demo_model import tell

    accepted, record, lines = tell(options.output)
    show(options, record, lines)
    return DONE if accepted else REFUSED
