"""relayout inspect: what a model is, its Transposes and layouts."""

from __future__ import annotations

import argparse
from typing import Any

from relayout.cli.codes import DONE
from relayout.cli.names import NameOption, given, looks, targets, walks
from relayout.cli.streams import model_of
from relayout.cli.terminal import add_dims, add_form, add_report, progress, show, write_report
from relayout.errors import RelayoutError

DESCRIPTION = (
    "Show the interface of a model, its operators, its Transposes with what they move and why they "
    "are there, or the layout of every tensor. Nothing is changed."
)
EXAMPLE = "relayout inspect in.onnx --layouts"
LOOK_HELP = "what the layout of a Reshape is inferred from if no consumer fixes it (with --layouts)"
WALK_HELP = "in which pass that is inferred (with --layouts)"
TARGET_HELP = "show what each tensor becomes for this target too (with --layouts)"


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "inspect",
        help="show a model's Transposes and why they are there",
        description=DESCRIPTION,
    )
    parser.add_argument("model", metavar="IN.onnx")
    add_dims(parser)
    layouts = parser.add_argument_group("layouts")
    layouts.add_argument("--layouts", action="store_true", help="show the layout of every tensor")
    layouts.add_argument("--look", action=NameOption, named=looks, about=LOOK_HELP)
    layouts.add_argument("--walk", action=NameOption, named=walks, about=WALK_HELP)
    layouts.add_argument("--target", action=NameOption, named=targets, about=TARGET_HELP)
    add_report(parser)
    add_form(parser)
    parser.set_defaults(command=run)


def run(options: argparse.Namespace) -> int:
    from relayout import api
    from relayout.optimizer.model_pages import model_page
    from relayout.report.text import model_text

    if options.layouts and (options.report or options.model_explorer):
        raise RelayoutError("pages and graphs have the layouts too: leave out --layouts")
    if options.layouts:
        return _inspect_layouts(options)
    alone = [name for name in ("look", "walk", "target") if getattr(options, name) is not None]
    if alone:
        raise RelayoutError(f"--{alone[0]} goes with --layouts")
    model, dims = model_of(options.model), dict(options.dim)
    with progress() as stage:
        stage("reading")
        record = api.inspect(model, dims=dims)
        write_report(options, lambda: model_page(model, record, dims))
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
