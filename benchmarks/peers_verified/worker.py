"""Judges what one tool makes of some models, in a process of its own, since tools may end it."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

import onnx

from benchmarks.peers_verified.verdicts import FAILED, Data, Judged, judged
from tests.suites.backend import case

LARGEST = 1 << 26
"""Bytes of the largest model that is judged."""


def main(tool: str, models: Sequence[str], folder: Path) -> None:
    warnings.simplefilter("ignore")
    for name in models:
        _say({"doing": name})
        found = _judged(tool, name, folder)
        _say({"model": name, "kind": found.kind, "reason": found.reason})


def _judged(tool: str, name: str, folder: Path) -> Judged:
    data: Data | None = None
    if name.startswith("suite/"):
        _, kind, test = name.split("/")
        found = case(kind, test)
        model, data = found.model, found.data
    else:
        model = onnx.load(name)
    if model.ByteSize() > LARGEST:
        return Judged("too large")
    verdict = judged(tool, model, data)
    if verdict.kind not in {"as given", "identical", FAILED}:
        (folder / f"{tool}-{Path(name).stem}.txt").write_text(f"{verdict.kind}: {verdict.reason}\n")
    return verdict


def _say(record: dict[str, str]) -> None:
    print(json.dumps(record), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.stdin.read().split("\n"), Path(sys.argv[2]))
