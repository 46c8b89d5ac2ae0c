"""relayout bench: a model on the runtimes that are installed, side by side."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from relayout.cli.codes import DONE
from relayout.cli.compile import add_device
from relayout.cli.terminal import (
    add_numbers,
    add_report,
    add_trace,
    count,
    numeric_options,
    progress,
    show,
    traced,
    write_report,
)

DESCRIPTION = (
    "Time a model in torch with fused kernels, in torch without, and on ONNX Runtime, in turns in "
    "one process; print the middle of the times and how many times as fast relayout is."
)
EXAMPLE = "relayout bench in.onnx --dim N=8"


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "bench", help="time a model on the installed runtimes", description=DESCRIPTION
    )
    parser.add_argument("model", metavar="IN.onnx")
    parser.add_argument("--rounds", type=count, default=20, metavar="N", help="runs of each")
    add_device(parser)
    add_numbers(parser)
    add_report(parser)
    add_trace(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(command=run)


def run(options: argparse.Namespace) -> int:
    with traced(options) as tracks, progress() as stage:
        stage("reading")
        from relayout.backends.torch.timing import time_model
        from relayout.backends.torch.verification import drawn_feeds
        from relayout.optimizer.model_pages import timing_page

        path = Path(options.model)
        feeds = drawn_feeds(path, numeric_options(options))
        times = time_model(
            path,
            feeds,
            device=options.device,
            dtype=options.dtype,
            rounds=max(1, options.rounds),
            dims=dict(options.dim),
            stage=stage,
            ran=lambda way, span: tracks.setdefault(way, []).append(span),
        )
        tracks["steps"] = [*stage.spans()]
    spans = [(each.way, each.median, each.low, each.high) for each in times]
    write_report(options, lambda: timing_page(path, spans))
    own = times[0].median
    lines = [
        f"{each.way:22} {each.median:9.3f} ms ({each.low:.3f} to {each.high:.3f}), "
        f"{each.median / own:.2f} times as long as relayout"
        for each in times
    ]
    show(options, {"times": [each.to_json() for each in times]}, lines)
    return DONE
