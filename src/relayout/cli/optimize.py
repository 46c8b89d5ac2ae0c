"""relayout optimize: remove Transposes, verify, write."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from relayout.cli.codes import DONE, REFUSED
from relayout.cli.names import NameOption, given, strategies
from relayout.cli.streams import model_of, output_of
from relayout.cli.terminal import (
    add_choosing,
    add_form,
    add_numbers,
    choosing,
    count,
    numeric_options,
    progress,
    show,
)
from relayout.graph.collector import paused_collector

if TYPE_CHECKING:
    from relayout.optimizer.result import Result

DESCRIPTION = (
    "Choose the order in which every tensor is stored so that, of the variants offered, Transposes "
    "cost least; "
    "compare the numbers of both models; write the result only if they are equal."
)
STRATEGY_HELP = "how to choose layouts"
FREE_HELP = "let the order of the model's {} change; the change is reported"
SIZE_HELP = "store no constant in two orders, even where that would save Transposes"
OPSET_HELP = "bring the model to this newer opset first; from 23 on Attention is an operator"


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "optimize", help="remove Transposes, verify, write", description=DESCRIPTION
    )
    parser.add_argument("model", metavar="IN.onnx")
    parser.add_argument("-o", "--output", metavar="OUT.onnx", help="without it nothing is written")
    add_choosing(parser)
    parser.add_argument("--strategy", action=NameOption, named=strategies, about=STRATEGY_HELP)
    parser.add_argument("--certificate", metavar="C.json", help="write the proof of the choice")
    parser.add_argument("--free-inputs", action="store_true", help=FREE_HELP.format("inputs"))
    parser.add_argument("--free-outputs", action="store_true", help=FREE_HELP.format("outputs"))
    parser.add_argument("--keep-size", action="store_true", help=SIZE_HELP)
    parser.add_argument("--opset", type=count, metavar="N", help=OPSET_HELP)
    parser.add_argument("--no-verify", action="store_true", help="write without comparing numbers")
    add_numbers(parser)
    add_form(parser)
    parser.set_defaults(command=run)


def run(options: argparse.Namespace) -> int:
    with paused_collector():
        return _run(options)


def _run(options: argparse.Namespace) -> int:
    from relayout.optimizer import optimize as road
    from relayout.report.text import run_text

    def report(result: Result) -> None:
        record = result.record()
        show(options, record.to_json(), run_text(record, every=options.all))

    with progress() as stage:

        def ready(result: Result) -> None:
            stage.end()
            report(result)

        result = road.optimize(
            model_of(options.model),
            output_of(options.output),
            **choosing(options),
            **given(options, "strategy"),
            free_inputs=options.free_inputs,
            free_outputs=options.free_outputs,
            opset=options.opset,
            keep_size=options.keep_size,
            verify=not options.no_verify,
            inputs=numeric_options(options),
            certificate=options.certificate,
            ready=ready,
            stage=stage,
        )
    if not result.accepted:
        report(result)
    return DONE if result.accepted else REFUSED
