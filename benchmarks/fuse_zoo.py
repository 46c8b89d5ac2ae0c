"""Fuse every model of a zoo: python -m benchmarks.fuse_zoo PATH [--only NAME ...] [--mode MODE]

PATH is as for `benchmarks.zoo`. Each model is fused, verified by numbers, written, checked by onnx
in full, and taken apart again, which must give back the message it was made of. One line a model,
totals last; the exit code is 0 if all of them succeeded.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import onnx

from benchmarks.zoo import Entry, entries
from relayout.errors import RelayoutError
from relayout.fusion.partition import MODES, RELAYOUT, TVM
from relayout.graph.io.load import load
from relayout.graph.io.sources import BINARY, encoded
from relayout.optimizer.fuse import fuse
from relayout.optimizer.grouping import UNFUSED
from relayout.report.fusion import FusionRecord
from relayout.verify.verdict import NumericOptions

WAYS = (UNFUSED, TVM.name, RELAYOUT.name)


@dataclass
class Outcome:
    """What became of one model."""

    verdict: str
    record: FusionRecord | None = None
    valid: bool = False
    """What onnx finds in the result it finds in the given model too."""
    restored: bool = False

    @property
    def fused(self) -> bool:
        return self.record is not None and self.record.output is not None

    @property
    def good(self) -> bool:
        return self.fused and self.valid and self.restored


def tried(entry: Entry, mode: str, scratch: Path) -> Outcome:
    """Fuse a model and take it apart again."""
    output = scratch / "fused.onnx"
    feeds = entry.row.get("feeds", {})
    inputs = NumericOptions(shapes={name: tuple(shape) for name, (_, shape) in feeds.items()})
    try:
        record = fuse(entry.file, output, mode=mode, inputs=inputs).record()
    except RelayoutError as error:
        return Outcome(str(error))
    outcome = Outcome(record.verdict, record)
    if outcome.fused:
        outcome.valid = not _complains(output) or _complains(entry.file)
        back = fuse(output, inline=True, verify=False).model
        outcome.restored = encoded(back, BINARY) == encoded(load(entry.file).source, BINARY)
        output.unlink()
    return outcome


def _complains(file: Path) -> bool:
    try:
        onnx.checker.check_model(file, full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError):
        return True
    return False


def counted(outcome: Outcome) -> Counter[str]:
    counts: Counter[str] = Counter(models=1, good=outcome.good)
    counts.update(fused=outcome.fused, valid=outcome.valid, restored=outcome.restored)
    counts.update(exact="exact" in outcome.verdict)
    if outcome.record is None:
        return counts
    counts.update(groups=len(outcome.record.groups))
    for way, found in outcome.record.figures.items():
        counts[f"kernels {way}"] += found.kernels
        counts[f"bytes {way}"] += found.bytes_moved
    counts["above tvm"] += any(
        counts[f"{figure} {RELAYOUT.name}"] > counts[f"{figure} {TVM.name}"]
        for figure in ("kernels", "bytes")
    )
    return counts


def line(entry: Entry, outcome: Outcome) -> str:
    counts = counted(outcome)
    kernels = " / ".join(str(counts[f"kernels {way}"]) for way in WAYS)
    size = " / ".join(f"{counts[f'bytes {way}'] / 1e6:.1f}" for way in WAYS)
    faults = [word for word in ("fused", "valid", "restored") if not getattr(outcome, word)]
    not_done = "".join(f", NOT {word.upper()}" for word in faults)
    return f"{entry.name}: {kernels} kernels, {size} MB, {outcome.verdict}{not_done}"


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("path", type=Path)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--mode", default=RELAYOUT.name, choices=MODES)
    options = parser.parse_args()
    total: Counter[str] = Counter()
    print(f"kernels and bytes: {' / '.join(WAYS)}")
    with tempfile.TemporaryDirectory() as scratch:
        for entry in entries(options.path, options.only, Path(scratch)):
            outcome = tried(entry, options.mode, Path(scratch))
            total.update(counted(outcome))
            print(line(entry, outcome), flush=True)
    print(dict(total))
    return 0 if total["good"] == total["models"] else 1


if __name__ == "__main__":
    sys.exit(main())
