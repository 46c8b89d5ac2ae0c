"""relayout optimize: remove Transposes, verify, write."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from relayout.cli.amounts import at_least_one, count, named_layout
from relayout.cli.codes import DONE, REFUSED
from relayout.cli.names import NameOption, given, profiles, strategies
from relayout.cli.streams import model_of, output_of
from relayout.cli.terminal import (
    PRICES_HELP,
    add_choosing,
    add_form,
    add_numbers,
    add_report,
    add_trace,
    choosing,
    numeric_options,
    progress,
    show,
    traced,
)
from relayout.errors import RelayoutError
from relayout.graph.collector import paused_collector

if TYPE_CHECKING:
    from relayout.optimizer.measuring import Measuring
    from relayout.optimizer.result import Result

DESCRIPTION = (
    "Choose the order in which every tensor is stored so that, of the variants offered, Transposes "
    "cost least; "
    "compare the numbers of both models; write the result only if they are equal."
)
EXAMPLE = "relayout optimize in.onnx -o out.onnx --report r.html"
STRATEGY_HELP = "how to choose layouts"
FREE_HELP = "let the order of the model's {} change; the change is reported"
RANK_HELP = (
    "let no tensor have more axes than this, unless the given model has one that does (default: "
    "as many as the given model has, or more if fewer Transposes are left and those are counted)"
)
PROFILE_HELP = "a device, or a file *.toml, whose limits the result keeps where the model does"
INLINE_HELP = "write out what functions of the model do, for runtimes that have none"
SIZE_HELP = "store no constant in two orders, even where that would save Transposes"
OPSET_HELP = "bring the model to this newer opset first; from 23 on Attention is an operator"

LINKS_HELP = (
    "read data files that have hard links, and link unchanged ones into the folder of the result "
    "instead of copying them; onnx itself reads no data through hard links"
)
SUGGEST_HELP = "try other options too, and list those that would leave fewer Transposes"
MEASURE_HELP = (
    "run candidates in the target's runtime, in turns, and keep the fastest; the given model if "
    "none is faster"
)
THREADS_HELP = "with --measure: also on the clock with this many threads (default 1)"


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "optimize", help="remove Transposes, verify, write", description=DESCRIPTION
    )
    parser.add_argument("model", metavar="IN.onnx")
    parser.add_argument("-o", "--output", metavar="OUT.onnx", help="without it nothing is written")
    parser.add_argument("--hard-links", action="store_true", help=LINKS_HELP)
    choice = parser.add_argument_group("the choice of layouts")
    add_choosing(choice)
    choice.add_argument("--prices", metavar="FILE", help=PRICES_HELP)
    choice.add_argument("--strategy", action=NameOption, named=strategies, about=STRATEGY_HELP)
    choice.add_argument("--keep-size", action="store_true", help=SIZE_HELP)
    choice.add_argument("--max-rank", type=count, metavar="N", help=RANK_HELP)
    choice.add_argument("--profile", action=NameOption, named=profiles, about=PROFILE_HELP)
    choice.add_argument("--opset", type=count, metavar="N", help=OPSET_HELP)
    choice.add_argument("--measure", action="store_true", help=MEASURE_HELP)
    choice.add_argument("--threads", type=at_least_one, metavar="N", help=THREADS_HELP)
    interface = parser.add_argument_group("the interface of the model")
    interface.add_argument("--free-inputs", action="store_true", help=FREE_HELP.format("inputs"))
    interface.add_argument("--free-outputs", action="store_true", help=FREE_HELP.format("outputs"))
    for kind in ("input", "output"):
        interface.add_argument(
            f"--{kind}-layout",
            action="append",
            default=[],
            type=named_layout,
            metavar="NAME=NHWC",
            help=f"an {kind} in another layout than the model has it (may be repeated)",
        )
    interface.add_argument("--inline-functions", action="store_true", help=INLINE_HELP)
    numbers = parser.add_argument_group("verification")
    numbers.add_argument("--no-verify", action="store_true", help="write without comparing numbers")
    add_numbers(numbers)
    told = parser.add_argument_group("what is reported")
    told.add_argument("--suggest", action="store_true", help=SUGGEST_HELP)
    told.add_argument("--certificate", metavar="C.json", help="write the proof of the choice")
    add_report(told)
    add_trace(told)
    add_form(told)
    parser.set_defaults(command=run, writes_model=True)


def run(options: argparse.Namespace) -> int:
    with paused_collector():
        return _run(options)


def _measuring(options: argparse.Namespace) -> Measuring | None:
    if options.measure:
        from relayout.optimizer.measuring import Measuring

        return Measuring(threads=1 if options.threads is None else options.threads)
    if options.threads is not None:
        raise RelayoutError("--threads goes with --measure")
    return None


def _run(options: argparse.Namespace) -> int:
    from relayout.optimizer import optimize as road
    from relayout.report.text import run_text

    def report(result: Result) -> None:
        record = result.record()
        show(options, record.to_json(), run_text(record, every=options.all))

    with traced(options) as tracks, progress() as stage:

        def ready(result: Result) -> None:
            stage.end()
            report(result)

        result = road.optimize(
            model_of(options.model),
            output_of(options.output),
            **choosing(options),
            **given(options, "strategy", "prices", "profile"),
            free_inputs=options.free_inputs,
            free_outputs=options.free_outputs,
            input_layouts=dict(options.input_layout),
            output_layouts=dict(options.output_layout),
            opset=options.opset,
            inline_functions=options.inline_functions,
            max_rank=options.max_rank,
            keep_size=options.keep_size,
            hard_links=options.hard_links,
            verify=not options.no_verify,
            inputs=numeric_options(options),
            certificate=options.certificate,
            report=options.report,
            model_explorer=options.model_explorer,
            suggest=options.suggest,
            measure=_measuring(options),
            ready=ready,
            stage=stage,
        )
        tracks |= {"steps": [*stage.spans()], "passes": [*result.spans]}
    if not result.accepted:
        report(result)
    return DONE if result.accepted else REFUSED
