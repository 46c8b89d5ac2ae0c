"""relayout explain: one node of a model."""

from __future__ import annotations

import argparse
from typing import Any

from relayout.cli.codes import DONE
from relayout.cli.streams import model_of
from relayout.cli.terminal import add_dims, progress, show

DESCRIPTION = (
    "Show what one node reads and writes, in which layouts, and, if it is a Transpose, what it "
    "moves and why it is there. A node is named by its name or by a tensor that it writes."
)
EXAMPLE = "relayout explain in.onnx transpose_0"


def add_parser(commands: Any) -> None:
    parser = commands.add_parser("explain", help="show one node, and why", description=DESCRIPTION)
    parser.add_argument("model", metavar="IN.onnx")
    parser.add_argument("node", metavar="NODE")
    add_dims(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(command=run)


def run(options: argparse.Namespace) -> int:
    from relayout.optimizer.explain import explain_node
    from relayout.report.node import explained_text

    with progress() as stage:
        stage("reading")
        records = explain_node(model_of(options.model), options.node, dims=dict(options.dim))
    show(options, {"nodes": [record.to_json() for record in records]}, explained_text(records))
    return DONE
