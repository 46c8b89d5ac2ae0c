"""relayout check: fail if a model has more Transposes than allowed."""

from __future__ import annotations

import argparse
from typing import Any

from relayout.cli.codes import DONE, REFUSED
from relayout.cli.streams import model_of
from relayout.cli.terminal import count, progress, show


def add_parser(commands: Any) -> None:
    parser = commands.add_parser("check", help="fail if a model has more Transposes than allowed")
    parser.add_argument("model", metavar="IN.onnx")
    parser.add_argument("--max-transposes", type=count, required=True, metavar="N")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(command=run)


def run(options: argparse.Namespace) -> int:
    from relayout import api

    with progress() as stage:
        stage("reading")
        found = api.count(model_of(options.model)).transposes
    within = found <= options.max_transposes
    record = {"transposes": found, "max_transposes": options.max_transposes, "ok": within}
    verdict = "ok" if within else "too many"
    show(options, record, [f"{verdict}: {found} Transposes, at most {options.max_transposes}"])
    return DONE if within else REFUSED
