"""relayout inspect: what a model is, its Transposes and layouts."""

from __future__ import annotations

import argparse
from typing import Any

from relayout.cli.codes import DONE
from relayout.cli.names import NameOption, given, looks, targets, walks
from relayout.cli.streams import model_of
from relayout.cli.terminal import add_dims, add_form, progress, show

LOOK_HELP = "what the layout of a Reshape is inferred from if no consumer fixes it (with --layouts)"
WALK_HELP = "in which pass that is inferred (with --layouts)"
TARGET_HELP = "show what each tensor becomes for this target too (with --layouts)"


def add_parser(commands: Any) -> None:
    parser = commands.add_parser("inspect", help="show a model's Transposes and why they are there")
    parser.add_argument("model", metavar="IN.onnx")
    parser.add_argument("--layouts", action="store_true", help="show the layout of every tensor")
    parser.add_argument("--look", action=NameOption, named=looks, about=LOOK_HELP)
    parser.add_argument("--walk", action=NameOption, named=walks, about=WALK_HELP)
    parser.add_argument("--target", action=NameOption, named=targets, about=TARGET_HELP)
    add_dims(parser)
    add_form(parser)
    parser.set_defaults(command=run)


def run(options: argparse.Namespace) -> int:
    from relayout import api
    from relayout.report.text import model_text

    if options.layouts:
        return _inspect_layouts(options)
    with progress() as stage:
        stage("reading")
        record = api.inspect(model_of(options.model), dims=dict(options.dim))
    show(options, record.to_json(), model_text(record, every=options.all))
    return DONE


def _inspect_layouts(options: argparse.Namespace) -> int:
    from relayout import api
    from relayout.report.layouts import layouts_text

    with progress() as stage:
        stage("reading")
        record = api.infer_layouts(
            model_of(options.model), **given(options, "look", "walk", "target")
        )
    show(options, record.to_json(), layouts_text(record, every=options.all))
    return DONE
