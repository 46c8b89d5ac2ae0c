"""relayout fuse: groups of operators, written into the model or taken out of it again."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from relayout.cli.amounts import count
from relayout.cli.codes import DONE, REFUSED
from relayout.cli.names import NameOption, given, modes
from relayout.cli.streams import model_of, output_of
from relayout.cli.terminal import (
    add_numbers,
    add_report,
    numeric_options,
    progress,
    show,
    write_report,
)
from relayout.errors import RelayoutError

if TYPE_CHECKING:
    from relayout.optimizer.fuse import FuseResult
    from relayout.optimizer.grouping import GroupingOptions

DESCRIPTION = (
    "Group operators that can run as one kernel; write each group as a function of the model; "
    "compare the numbers of both models; write the result only if they are equal."
)
MODE_HELP = "which groups to make"
EXAMPLE = "relayout fuse in.onnx -o out.onnx"


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "fuse", help="group operators into kernels, verify, write", description=DESCRIPTION
    )
    parser.add_argument("model", metavar="IN.onnx")
    parser.add_argument("-o", "--output", metavar="OUT.onnx", help="without it nothing is written")
    parser.add_argument("--mode", action=NameOption, named=modes, about=MODE_HELP)
    parser.add_argument(
        "--fuse-level", type=count, default=1, metavar="N", help="0 leaves every operator alone"
    )
    parser.add_argument(
        "--max-depth", type=count, default=256, metavar="N", help="most operators in a group"
    )
    parser.add_argument(
        "--max-args", type=count, default=0, metavar="N", help="most arguments of a group; 0: any"
    )
    parser.add_argument(
        "--stop",
        metavar="NODE",
        action="append",
        default=[],
        help="no group goes on after this node (may be repeated)",
    )
    parser.add_argument(
        "--keep-function",
        metavar="NAME",
        action="append",
        default=[],
        help="a call of this function of the model is a kernel of its own (may be repeated)",
    )
    parser.add_argument(
        "--wrap-all", action="store_true", help="an operator alone becomes a function too"
    )
    question = parser.add_mutually_exclusive_group()
    question.add_argument("--inline", action="store_true", help="take the groups apart, exactly")
    question.add_argument("--dump", action="store_true", help="print the graph that was grouped")
    question.add_argument("--explain", metavar="NODE", help="print the group of a node, and why")
    numbers = parser.add_argument_group("verification")
    numbers.add_argument("--no-verify", action="store_true", help="write without comparing numbers")
    add_numbers(numbers)
    told = parser.add_argument_group("what is reported")
    add_report(told)
    told.add_argument("--all", action="store_true", help="list every group")
    told.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(command=run, writes_model=True)


def run(options: argparse.Namespace) -> int:
    asks = options.dump or options.explain is not None
    if asks and options.output:
        raise RelayoutError("--dump and --explain only print; leave out --output")
    if options.dump:
        return _dump(options)
    return _explain(options) if asks else _fuse(options)


def _fuse(options: argparse.Namespace) -> int:
    from relayout.optimizer import fuse as fused
    from relayout.optimizer.model_pages import fusion_page
    from relayout.report.fusion import fusion_text

    def report(result: FuseResult) -> None:
        record = result.record()
        show(options, record.to_json(), fusion_text(record, every=options.all))

    with progress() as stage:

        def ready(result: FuseResult) -> None:
            stage.end()
            report(result)

        result = fused.fuse(
            model_of(options.model),
            output_of(options.output),
            **given(options, "mode"),
            level=options.fuse_level,
            max_depth=options.max_depth,
            max_args=options.max_args,
            stop=options.stop,
            keep_function=options.keep_function,
            wrap_all=options.wrap_all,
            inline=options.inline,
            verify=not options.no_verify,
            inputs=numeric_options(options),
            ready=ready,
            stage=stage,
        )
    if not result.accepted:
        report(result)
    write_report(options, lambda: fusion_page(result))
    return DONE if result.accepted else REFUSED


def _dump(options: argparse.Namespace) -> int:
    from rich.markup import escape

    from relayout.optimizer import fuse as fused

    with progress() as stage:
        stage("grouping")
        text = fused.listing(model_of(options.model), _asked(options))
    show(options, {"dump": text.splitlines()}, [escape(text)])
    return DONE


def _explain(options: argparse.Namespace) -> int:
    from relayout.optimizer import fuse as fused
    from relayout.report.fusion import node_text

    with progress() as stage:
        stage("grouping")
        records = fused.explain(model_of(options.model), options.explain, _asked(options))
    show(options, {"nodes": [record.to_json() for record in records]}, node_text(records))
    return DONE


def _asked(options: argparse.Namespace) -> GroupingOptions:
    from relayout.fusion.groups import Limits
    from relayout.optimizer.grouping import GroupingOptions

    limits = Limits(options.fuse_level, options.max_depth, options.max_args)
    return GroupingOptions(
        limits=limits,
        stop=options.stop,
        keep_function=options.keep_function,
        **given(options, "mode"),
    )
