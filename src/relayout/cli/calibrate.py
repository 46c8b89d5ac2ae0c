"""relayout calibrate: which kernels are fastest on this device, measured once and kept."""

from __future__ import annotations

import argparse
from typing import Any

from relayout.cli.codes import DONE
from relayout.cli.compile import add_device
from relayout.cli.names import NameOption, targets
from relayout.cli.terminal import add_dims, progress, show

TARGET_HELP = (
    "the runtime to measure: kernels of torch unless given; for one with a table of prices, that "
    "table, which is kept for `optimize --prices FILE`"
)
DESCRIPTION = (
    "Time the kernels that groups of the given models could run as, or of common convolutions if "
    "no model is given, keep the times for this device, and show what is chosen. What is known "
    "already is not timed again unless --again is given. Times that spread too much are used and "
    "shown, but not kept."
)
EXAMPLE = "relayout calibrate in.onnx"


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "calibrate", help="measure kernels on this device", description=DESCRIPTION
    )
    parser.add_argument("models", metavar="IN.onnx", nargs="*")
    add_device(parser)
    add_dims(parser)
    parser.add_argument(
        "--target", action=NameOption, named=targets, about=TARGET_HELP, default=None
    )
    parser.add_argument("--again", action="store_true", help="time what is known anew")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(command=run)


def run(options: argparse.Namespace) -> int:
    from relayout.targets.target import TORCH

    if options.target not in (None, TORCH.name):
        return _run_prices(options)
    with progress() as stage:
        stage("measuring")
        from relayout.backends.torch.calibration import calibrate
        from relayout.report.kernels import calibration_text

        record = calibrate(
            options.models, options.device, options.dtype, dict(options.dim), again=options.again
        )
    show(options, record.to_json(), calibration_text(record))
    return DONE


def _run_prices(options: argparse.Namespace) -> int:
    from relayout.optimizer.calibrating import kept, measured_prices
    from relayout.targets.target import target_of

    with progress() as stage:
        stage("measuring")
        target = target_of(options.target)
        prices = measured_prices(target)
        path = kept(target, prices)
    lines = (f"{name}: {figures}" for name, figures in prices.to_json().items())
    show(options, prices.to_json(), (*lines, f"kept in {path}, for --prices"))
    return DONE
