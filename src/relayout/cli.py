"""The command line; with `commands/` the only code that prints.

Exit codes: 0 done (and verified), 1 the verdict is no, 2 bad input or usage.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from relayout import __version__
from relayout.commands import bench as bench_command
from relayout.commands import calibrate as calibrate_command
from relayout.commands import compile as compile_command
from relayout.commands import fuse
from relayout.commands import run as run_command
from relayout.commands.terminal import BAD_INPUT, DONE, REFUSED
from relayout.commands.terminal import add_dims as _add_dims
from relayout.commands.terminal import add_numbers as _add_numbers
from relayout.commands.terminal import count as _count
from relayout.commands.terminal import numeric_options as _numeric_options
from relayout.commands.terminal import progress as _progress
from relayout.commands.terminal import show as _show
from relayout.errors import RelayoutError

DEBUG = "RELAYOUT_DEBUG"
"""The environment variable that lets a fault of our own show its traceback."""


class Parser(argparse.ArgumentParser):
    """Says in one line what is wrong with a call."""

    def error(self, message: str) -> NoReturn:
        self.exit(BAD_INPUT, f"{self.prog}: {message}; see '{self.prog} --help'\n")


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    command: Callable[[argparse.Namespace], int] = options.command
    try:
        return command(options)
    except RelayoutError as error:
        sys.stderr.write(f"relayout: {error}\n")
        return BAD_INPUT
    except BrokenPipeError:
        return DONE
    except KeyboardInterrupt:
        sys.stderr.write("relayout: interrupted\n")
        return BAD_INPUT
    except Exception as error:
        if DEBUG in os.environ:
            raise
        kind = type(error).__name__
        sys.stderr.write(f"relayout: a fault of relayout's own ({kind}: {_one_line(error)}); ")
        sys.stderr.write(f"nothing was written. {DEBUG}=1 shows where; please report it\n")
        return BAD_INPUT


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:200]


def optimize(options: argparse.Namespace) -> int:
    from relayout import api
    from relayout.report.text import run_text

    if options.certificate and options.strategy != "exact":
        raise RelayoutError("--certificate needs the exact strategy: only that one proves anything")
    with _progress() as stage:
        result = api.optimize(
            options.model,
            options.output,
            target=options.target,
            keep=options.keep_nchw,
            einsum=options.einsum,
            strategy=options.strategy,
            minimize=options.minimize,
            budget=options.budget,
            fix_defaults=options.fix_defaults,
            free_inputs=options.free_inputs,
            free_outputs=options.free_outputs,
            opset=options.opset,
            verify=not options.no_verify,
            inputs=_numeric_options(options),
            stage=stage,
        )
    if options.certificate and result.accepted:
        _write_json(options.certificate, result.certificate())
    record = result.record()
    _show(options, record.to_json(), run_text(record, every=options.all))
    return DONE if result.accepted else REFUSED


def inspect(options: argparse.Namespace) -> int:
    from relayout import api
    from relayout.report.text import model_text

    if options.layouts:
        return _inspect_layouts(options)
    with _progress() as stage:
        stage("reading")
        record = api.inspect(options.model, dims=dict(options.dim))
    _show(options, record.to_json(), model_text(record, every=options.all))
    return DONE


def _inspect_layouts(options: argparse.Namespace) -> int:
    from relayout import api
    from relayout.report.layouts import layouts_text

    with _progress() as stage:
        stage("reading")
        record = api.infer_layouts(options.model, look=options.look)
    _show(options, record.to_json(), layouts_text(record, every=options.all))
    return DONE


def compare(options: argparse.Namespace) -> int:
    from relayout.compare import compare_strategies
    from relayout.report.comparison import comparison_text

    with _progress() as stage:
        record = compare_strategies(
            options.model,
            target=options.target,
            keep=options.keep_nchw,
            einsum=options.einsum,
            minimize=options.minimize,
            budget=options.budget,
            fix_defaults=options.fix_defaults,
            verify=not options.no_verify,
            inputs=_numeric_options(options),
            stage=stage,
        )
    _show(options, record.to_json(), comparison_text(record))
    verified = all(strategy.verified for strategy in record.strategies)
    return DONE if verified or options.no_verify else REFUSED


def check(options: argparse.Namespace) -> int:
    from relayout import api

    with _progress() as stage:
        stage("reading")
        count = api.count(options.model).transposes
    within = count <= options.max_transposes
    record = {"transposes": count, "max_transposes": options.max_transposes, "ok": within}
    verdict = "ok" if within else "too many"
    _show(options, record, [f"{verdict}: {count} Transposes, at most {options.max_transposes}"])
    return DONE if within else REFUSED


def verify_certificate(options: argparse.Namespace) -> int:
    from relayout import api

    document = _read_json(options.certificate)
    with _progress() as stage:
        stage("checking")
        found = api.check_certificate(document, options.model)
    about = "the proofs hold, and they are about this model" if options.model else "the proofs hold"
    _show(options, {"ok": not found, "faults": found}, found or [about])
    return REFUSED if found else DONE


def demo(options: argparse.Namespace) -> int:
    from relayout.demo import tell

    accepted, record, lines = tell(options.output)
    _show(options, record, lines)
    return DONE if accepted else REFUSED


def _parser() -> Parser:
    parser = Parser(prog="relayout", description="The layout compiler for ONNX models.")
    parser.add_argument("--version", action="version", version=f"relayout {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _add_optimize(commands)
    _add_inspect(commands)
    _add_compare(commands)
    fuse.add_parser(commands)
    compile_command.add_parser(commands)
    run_command.add_parser(commands)
    bench_command.add_parser(commands)
    calibrate_command.add_parser(commands)
    _add_check(commands)
    _add_verify_certificate(commands)
    _add_demo(commands)
    return parser


def _add_optimize(commands: Any) -> None:
    parser = commands.add_parser(
        "optimize", help="remove Transposes, verify, write", description=OPTIMIZE_HELP
    )
    parser.add_argument("model", metavar="IN.onnx")
    parser.add_argument("-o", "--output", metavar="OUT.onnx", help="without it nothing is written")
    _add_choosing(parser)
    parser.add_argument("--strategy", default="exact", metavar="NAME", help=STRATEGY_HELP)
    parser.add_argument("--certificate", metavar="C.json", help="write the proof of the choice")
    parser.add_argument("--free-inputs", action="store_true", help=FREE_HELP.format("inputs"))
    parser.add_argument("--free-outputs", action="store_true", help=FREE_HELP.format("outputs"))
    parser.add_argument("--opset", type=_count, metavar="N", help=OPSET_HELP)
    parser.add_argument("--no-verify", action="store_true", help="write without comparing numbers")
    _add_numbers(parser)
    _add_form(parser)
    parser.set_defaults(command=optimize)


def _add_inspect(commands: Any) -> None:
    parser = commands.add_parser("inspect", help="show a model's Transposes and why they are there")
    parser.add_argument("model", metavar="IN.onnx")
    parser.add_argument("--layouts", action="store_true", help="show the layout of every tensor")
    looks = ("before", "after", "nearest")
    parser.add_argument("--look", choices=looks, default="before", help=LOOK_HELP)
    _add_dims(parser)
    _add_form(parser)
    parser.set_defaults(command=inspect)


def _add_compare(commands: Any) -> None:
    parser = commands.add_parser("compare", help="show what each way to choose layouts leads to")
    parser.add_argument("model", metavar="IN.onnx")
    _add_choosing(parser)
    parser.add_argument("--no-verify", action="store_true", help="do not compare numbers")
    _add_numbers(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(command=compare)


def _add_check(commands: Any) -> None:
    parser = commands.add_parser("check", help="fail if a model has more Transposes than allowed")
    parser.add_argument("model", metavar="IN.onnx")
    parser.add_argument("--max-transposes", type=_count, required=True, metavar="N")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(command=check)


def _add_verify_certificate(commands: Any) -> None:
    parser = commands.add_parser(
        "verify-certificate", help="check a proof that no other choice of layouts costs less"
    )
    parser.add_argument("certificate", metavar="C.json")
    parser.add_argument(
        "--model", metavar="IN.onnx", help="the given model: the proof must be about it"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(command=verify_certificate)


def _add_demo(commands: Any) -> None:
    parser = commands.add_parser("demo", help="the whole story on a small model made on the spot")
    parser.add_argument("-o", "--output", metavar="OUT.onnx", help="keep the optimised model")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(command=demo)


def _add_choosing(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--target", choices=TARGET_NAMES, default="onnx", help=TARGET_HELP)
    parser.add_argument("--keep-nchw", nargs="+", default=[], metavar="NAME", help=KEEP_HELP)
    parser.add_argument("--minimize", choices=("bytes", "count"), default="bytes", help=GOAL_HELP)
    parser.add_argument("--einsum", action=argparse.BooleanOptionalAction, help=EINSUM_HELP)
    parser.add_argument("--budget", type=float, default=10.0, metavar="SECONDS", help=BUDGET_HELP)
    parser.add_argument("--fix-defaults", action="store_true", help=DEFAULTS_HELP)


def _add_form(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--all", action="store_true", help="list every Transpose")
    parser.add_argument("--json", action="store_true", help="print JSON")


OPTIMIZE_HELP = (
    "Choose the order in which every tensor is stored so that Transposes cost least; "
    "compare the numbers of both models; write the result only if they are equal."
)
LOOK_HELP = "which operator says what a Reshape makes, where nothing behind it says it (--layouts)"
FREE_HELP = "let the order of the model's {} change; it is said how"
DEFAULTS_HELP = "make constants of inputs that have a default; they are inputs no more"
OPSET_HELP = "bring the model to this newer opset first; from 23 on Attention is an operator"
EINSUM_HELP = (
    "whether products may be stated as Einsum where that saves Transposes (default: with "
    "--minimize count for target onnx); what runtimes copy inside of it counts as bytes moved"
)
GOAL_HELP = "what to make least: bytes moved by Transposes (default) or their count"
STRATEGY_HELP = (
    "how to choose layouts: naive, auto-nhwc, transmit, greedy, preset, preset-plus "
    "or exact (default)"
)
BUDGET_HELP = "how long to look for the best choice of layouts (default 10)"
TARGET_NAMES = ("onnx", "ort", "nhwc", "nhwc-hwoi", "nhwc-ohwi")
TARGET_HELP = (
    "onnx: standard operators only (default); ort: also those of ONNX Runtime; "
    "nhwc: convolutions, pools and normalisations channels last, as functions of the model, "
    "with weights as HWIO, HWOI or OHWI"
)


KEEP_HELP = "nodes that stay as they are: a name (* and ? match), op:LRN, rank:3 or device:cpu"


def _write_json(path: str, document: Any) -> None:
    try:
        Path(path).write_text(json.dumps(document), encoding="utf-8")
    except OSError as error:
        raise RelayoutError(f"cannot write {path!r}: {error.strerror}") from None


def _read_json(path: str) -> Any:
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise RelayoutError(f"cannot read {path!r}: {error.strerror}") from None
    except ValueError:
        raise RelayoutError(f"{path!r} is not JSON") from None


if __name__ == "__main__":
    sys.exit(main())
