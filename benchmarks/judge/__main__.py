"""Random whole models through every target and through torch.

python -m benchmarks.judge --models 1000 [--seed 0] [--targets onnx ort] [--compile 4] [--tune 0]

Each model is valid and runs as given, else it is dropped and counted. It is optimised for each target,
without verification, and what that gives is run on the same inputs and compared here: integers by
every bit. Failures are written as reduced models. Exit code 1 if there is one.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from relayout.targets.target import TARGETS

def main() -> int:
    options = _options()
    counts: Counter[tuple[str, str]] = Counter()
    reasons: Counter[tuple[str, str, str]] = Counter()
    failures = 0
    for record in _records(options):
        counts[record["road"], record["kind"]] += 1
        failures += record["kind"] in {"wrong", "crashed", "ended the process"}
        if record["reason"]:
            reasons[record["road"], record["kind"], record["reason"]] += 1
        if record["kind"] in {"wrong", "crashed", "ended the process"}:
            print(json.dumps(record), flush=True)
    for (road, kind), count in sorted(counts.items()):
        print(f"{road}: {count} {kind}")
    for (road, kind, reason), count in reasons.most_common(options.reasons):
        print(f"  {count} x {road}, {kind}: {reason}")
    return 1 if failures else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0, help="of the first model")
    parser.add_argument("--targets", nargs="*", default=sorted(TARGETS))
    parser.add_argument("--compile", type=int, default=4, help="every so many models; 0: none")
    parser.add_argument("--tune", type=int, default=0, help="with kernels chosen, likewise")
    parser.add_argument("--output", type=Path, default=Path("judged"), help="folder for failures")
    parser.add_argument("--reasons", type=int, default=30, help="how many reasons are printed")
    return parser.parse_args()


def _records(options: argparse.Namespace) -> Iterator[dict[str, str]]:
    """What workers report; one that ends is followed by another, from the next model on."""
    seed, end = options.seed, options.seed + options.models
    while seed < end:
        settings = [str(n) for n in (seed, end, options.compile, options.tune, options.output)]
        command = [sys.executable, "-m", "benchmarks.judge.worker", *settings, *options.targets]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as worker:
            doing = "starting"
            for line in worker.stdout or ():
                record = json.loads(line)
                if "doing" in record:
                    seed, doing = record["seed"], record["doing"]
                else:
                    yield record
        if worker.returncode == 0:
            return
        reason = f"seed {seed}: exit code {worker.returncode}"
        yield {"road": doing, "kind": "ended the process", "reason": reason}
        seed += 1


if __name__ == "__main__":
    raise SystemExit(main())
