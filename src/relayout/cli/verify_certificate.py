"""relayout verify-certificate: check a proof that a choice of layouts is least for the variants
offered.
"""

from __future__ import annotations

import argparse
from typing import Any

from relayout.cli.codes import DONE, REFUSED
from relayout.cli.documents import read_json
from relayout.cli.terminal import progress, show

SUMMARY = "check a proof that a choice of layouts is least for the variants offered"
DESCRIPTION = (
    "Check a proof that a choice of layouts is least for the variants offered, and what it is "
    "about: the given model, and the one that was written."
)
PROOFS_HOLD = "the proofs hold"
"""What is known of a certificate in which nothing is wrong."""
EXAMPLE = "relayout verify-certificate proof.json --model in.onnx"


def add_parser(commands: Any) -> None:
    parser = commands.add_parser("verify-certificate", help=SUMMARY, description=DESCRIPTION)
    parser.add_argument("document", metavar="C.json")
    parser.add_argument(
        "--model", metavar="IN.onnx", help="the given model: hash and proof must be about it"
    )
    parser.add_argument(
        "--result", metavar="OUT.onnx", help="the model that was written: its hash must be stated"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(command=run)


def run(options: argparse.Namespace) -> int:
    from relayout import api
    from relayout.report.certificate import certificate_lines

    document = read_json(options.document)
    with progress() as stage:
        stage("checking")
        found = api.check_certificate(document, options.model, options.result)
    lines = found or [*certificate_lines(document), _verdict(options)]
    about = {
        name: document.get(name)
        for name in ("relayout", "given", "written", "equivalence", "settings")
    }
    show(options, {"ok": not found, "faults": found, **about}, lines)
    return REFUSED if found else DONE


def _verdict(options: argparse.Namespace) -> str:
    """What was checked."""
    if not options.model and not options.result:
        return f"{PROOFS_HOLD}; --model and --result check what they are about"
    about = [
        *(["they are about the given model"] if options.model else []),
        *(["the result is the one that is stated"] if options.result else []),
    ]
    return ", and ".join((PROOFS_HOLD, *about))
