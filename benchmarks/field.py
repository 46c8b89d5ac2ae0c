"""Models as given and optimised, compared over a prime field.

python -m benchmarks.field PATH ... [--only NAME ...] [--target NAME ...] [--minimize count]

PATH is a zoo as for `benchmarks.zoo`. One line a model and target: 'equal', 'differs' or 'unknown'
with the reason, the seconds of CPU that the comparison took, and those of the optimisation. A model
that differs over the field need not be wrong: a constant that was folded and rounded is another
number there. Each model is compared in a process of its own, for at most the limit.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import onnx

from benchmarks.zoo import entries
from relayout.api import optimize
from relayout.targets.target import TARGETS
from relayout.verify.field.run import field_compare

NOT_OPTIMISED = ("torch",)
"""Targets that only a backend compiles for."""


def judged(file: Path, target: str, minimize: str, seed: int) -> str:
    """The verdict on one model, optimised for one target."""
    start = time.process_time()
    result = optimize(file, target=target, minimize=minimize, verify=False)
    spent = time.process_time() - start
    if not result.changed:
        return "as given"
    start = time.process_time()
    verdict = field_compare(onnx.load(file), result.model, seed=seed)
    seconds = time.process_time() - start
    reason = f" ({verdict.reason})" if verdict.reason else ""
    return f"{verdict.status}{reason}, {seconds:.1f} s, optimised in {spent:.1f} s"


def in_a_process(file: Path, target: str, options: argparse.Namespace) -> str:
    command = [sys.executable, "-m", "benchmarks.field", str(file), "--here", "--target", target]
    command += ["--minimize", options.minimize, "--seed", str(options.seed)]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=options.limit, check=False
        )
    except subprocess.TimeoutExpired:
        return "not done within the limit"
    return done.stdout.strip() if done.returncode == 0 else f"FAILED: {done.stderr.strip()[-300:]}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("paths", type=Path, nargs="+")
    parser.add_argument("--only", nargs="+", default=[])
    parser.add_argument("--target", nargs="+", default=[])
    parser.add_argument("--minimize", default="bytes")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--limit", type=float, default=300.0, help="seconds for each model")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.here:
        print(judged(options.paths[0], options.target[0], options.minimize, options.seed))
        return 0
    targets = options.target or [name for name in TARGETS if name not in NOT_OPTIMISED]
    total: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as scratch:
        for path in options.paths:
            for entry in entries(path, options.only, Path(scratch)):
                for target in targets:
                    verdict = in_a_process(entry.file, target, options)
                    total.update([verdict.partition(",")[0].partition(" (")[0].partition(":")[0]])
                    print(f"{entry.name}, {target}: {verdict}", flush=True)
    print(dict(total))
    return 1 if total["FAILED"] else 0


if __name__ == "__main__":
    sys.exit(main())
