"""relayout verify-certificate: check a proof that no other choice of layouts costs less."""

from __future__ import annotations

import argparse
from typing import Any

from relayout.cli.documents import read_json
from relayout.cli.terminal import DONE, REFUSED, progress, show


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "verify-certificate", help="check a proof that no other choice of layouts costs less"
    )
    parser.add_argument("certificate", metavar="C.json")
    parser.add_argument(
        "--model", metavar="IN.onnx", help="the given model: the proof must be about it"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(command=run)


def run(options: argparse.Namespace) -> int:
    from relayout import api

    document = read_json(options.certificate)
    with progress() as stage:
        stage("checking")
        found = api.check_certificate(document, options.model)
    about = "the proofs hold, and they are about this model" if options.model else "the proofs hold"
    show(options, {"ok": not found, "faults": found}, found or [about])
    return REFUSED if found else DONE
