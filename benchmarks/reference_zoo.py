"""Models in onnx's reference evaluator, as given and optimised.

python -m benchmarks.reference_zoo PATH [--only NAME ...] [--minimize count] [--limit SECONDS]

PATH is a zoo as for `benchmarks.zoo`, with an `index.json` that lists the inputs. One line a
model: whether the numbers are equal, by the same tolerance as everywhere, or why the evaluator does
not run it as given. Each model is run in a process of its own, for at most the limit. The exit code
is 0 if no model differs.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import onnx

from benchmarks.speed_zoo import feeds_of
from benchmarks.zoo import Entry, entries
from relayout.api import optimize
from relayout.verify.difference import difference
from relayout.verify.interface import interface_of
from relayout.verify.runtimes import REFERENCE, RefusedError


def judged(entry: Entry, minimize: str, scratch: Path) -> str:
    """The verdict on one model, run in the evaluator."""
    result = optimize(entry.file, minimize=minimize, verify=False)
    if not result.changed:
        return "as given"
    made = scratch / "made.onnx"
    onnx.save(result.model, made)
    feeds = feeds_of(entry.row)
    interface = interface_of(entry.file)
    try:
        wanted = REFERENCE.load(entry.file, interface)(feeds)
    except RefusedError as refusal:
        return f"not run as given: {str(refusal)[:120]}"
    found = REFERENCE.load(made, interface)(feeds)
    differences = [difference(*pair) for pair in zip(wanted, found, strict=True)]
    error = max((each.error for each in differences), default=0.0)
    return f"{'equal' if all(each.excused for each in differences) else 'DIFFERS'}, {error:.1e}"


def in_a_process(entry: Entry, options: argparse.Namespace) -> str:
    command = [sys.executable, "-m", "benchmarks.reference_zoo", str(options.path), "--here"]
    command += ["--minimize", options.minimize, "--only", entry.name]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=options.limit, check=False
        )
    except subprocess.TimeoutExpired:
        return "not done within the limit"
    return done.stdout.strip() if done.returncode == 0 else f"FAILED: {done.stderr.strip()[-200:]}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", type=Path)
    parser.add_argument("--only", nargs="+", default=[])
    parser.add_argument("--minimize", default="bytes")
    parser.add_argument("--limit", type=float, default=120.0, help="seconds for each model")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    total: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as scratch:
        for entry in entries(options.path, options.only, Path(scratch)):
            if options.here:
                print(judged(entry, options.minimize, Path(scratch)))
                continue
            verdict = in_a_process(entry, options)
            total.update([verdict.partition(",")[0].partition(":")[0]])
            print(f"{entry.name}: {verdict}", flush=True)
    if total:
        print(dict(total))
    return 1 if total["DIFFERS"] or total["FAILED"] else 0


if __name__ == "__main__":
    sys.exit(main())
