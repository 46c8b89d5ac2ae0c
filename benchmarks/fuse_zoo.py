"""Fuse every model of a zoo: python -m benchmarks.fuse_zoo PATH [--only NAME ...] [-- ARGS ...]

PATH is as for `benchmarks.zoo`. ARGS go to `relayout fuse`. Each model is fused, verified by
numbers, written, checked by onnx in full, and taken apart again, which must give back the message
it was made of. One line a model, totals last; the exit code says whether all of them went through.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx

from benchmarks.zoo import Entry, entries
from relayout.graph.load import load
from relayout.graph.sources import BINARY, encoded

WAYS = ("unfused", "tvm", "relayout")


@dataclass
class Outcome:
    """What became of one model."""

    record: dict[str, Any]
    fused: bool = False
    valid: bool = False
    """What onnx finds in the result it finds in the given model too."""
    restored: bool = False

    @property
    def good(self) -> bool:
        return self.fused and self.valid and self.restored


def fuse(entry: Entry, rest: list[str], scratch: Path) -> Outcome:
    output, back = scratch / "fused.onnx", scratch / "back.onnx"
    numbers = entry.arguments()
    done = _call([str(entry.file), "-o", str(output), "--json", *numbers, *rest])
    record = json.loads(done.stdout) if done.stdout else {"verdict": done.stderr.strip()[-300:]}
    outcome = Outcome(record, fused=done.returncode == 0 and output.exists())
    if outcome.fused:
        outcome.valid = _complaint(output) == "" or _complaint(entry.file) != ""
        _call([str(output), "-o", str(back), "--inline", "--no-verify"])
        outcome.restored = back.exists() and _bytes(onnx.load(back)) == _bytes(_given(entry))
    for file in (output, back):
        file.unlink(missing_ok=True)
    return outcome


def _call(arguments: list[str]) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "relayout", "fuse", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def _complaint(file: Path) -> str:
    try:
        onnx.checker.check_model(file, full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
        return str(error)
    return ""


def _given(entry: Entry) -> onnx.ModelProto:
    """The given model, its nodes put in order where they were not."""
    return load(entry.file).source


def _bytes(model: onnx.ModelProto) -> bytes:
    return encoded(model, BINARY)


def counted(outcome: Outcome) -> Counter[str]:
    figures = outcome.record.get("figures", {})
    counts: Counter[str] = Counter(models=1, good=outcome.good)
    counts.update(fused=outcome.fused, valid=outcome.valid, restored=outcome.restored)
    counts.update(exact="exact" in outcome.record["verdict"])
    counts.update(groups=len(outcome.record.get("groups", ())))
    for way in WAYS:
        found = figures.get(way, {})
        counts[f"kernels {way}"] += found.get("kernels", 0)
        counts[f"bytes {way}"] += found.get("bytes_read", 0) + found.get("bytes_written", 0)
    counts["above tvm"] += any(
        counts[f"{figure} relayout"] > counts[f"{figure} tvm"] for figure in ("kernels", "bytes")
    )
    return counts


def line(entry: Entry, outcome: Outcome) -> str:
    counts = counted(outcome)
    kernels = " / ".join(str(counts[f"kernels {way}"]) for way in WAYS)
    size = " / ".join(f"{counts[f'bytes {way}'] / 1e6:.1f}" for way in WAYS)
    faults = [word for word in ("fused", "valid", "restored") if not getattr(outcome, word)]
    not_done = "".join(f", NOT {word.upper()}" for word in faults)
    verdict = outcome.record["verdict"]
    return f"{entry.name}: {kernels} kernels, {size} MB, {verdict}{not_done}"


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("path", type=Path)
    parser.add_argument("--only", nargs="*", default=[])
    own, rest = sys.argv[1:], []
    if "--" in own:
        own, rest = own[: own.index("--")], own[own.index("--") + 1 :]
    options = parser.parse_args(own)
    total: Counter[str] = Counter()
    print(f"kernels and bytes: {' / '.join(WAYS)}")
    with tempfile.TemporaryDirectory() as scratch:
        for entry in entries(options.path, options.only, Path(scratch)):
            outcome = fuse(entry, rest, Path(scratch))
            total.update(counted(outcome))
            print(line(entry, outcome), flush=True)
    print(dict(total))
    return 0 if total["good"] == total["models"] else 1


if __name__ == "__main__":
    sys.exit(main())
