"""relayout calibrate: which kernels are fastest on this device, measured once and kept."""

from __future__ import annotations

import argparse
from typing import Any

from relayout.cli.compile import add_device
from relayout.cli.terminal import DONE, add_dims, progress, show

DESCRIPTION = (
    "Time the kernels that groups of the given models could run as, or of common convolutions if "
    "no model is given, keep the times for this device, and show what is chosen. What is known "
    "already is not timed again."
)


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "calibrate", help="measure kernels on this device", description=DESCRIPTION
    )
    parser.add_argument("models", metavar="IN.onnx", nargs="*")
    add_device(parser)
    add_dims(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(command=run)


def run(options: argparse.Namespace) -> int:
    with progress() as stage:
        stage("measuring")
        from relayout.backends.torch.calibration import calibrate

        choices = calibrate(options.models, options.device, options.dtype, dict(options.dim))
    lines = [f"{each.chosen:10} {each.group}: {_times(each.seconds)}" for each in choices]
    record = [
        {"group": choice.group, "chosen": choice.chosen, "seconds": choice.seconds}
        for choice in choices
    ]
    show(options, {"choices": record}, lines)
    return DONE


def _times(seconds: dict[str, float]) -> str:
    return ", ".join(f"{name} {1e6 * each:.0f} us" for name, each in seconds.items()) or "only one"
