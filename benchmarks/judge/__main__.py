"""Random whole models through every target and through torch.

python -m benchmarks.judge --models 1000 [--seed 0] [--targets onnx ort] [--compile 4] [--tune 0]
    [--verify 50]

Each model is valid and runs as given, else it is dropped and counted. It is optimised for each
target, without verification, and what that gives is run on the same inputs and compared here:
integers by every bit. Some are optimised with verification too, which must deliver what is right.
Failures are written as reduced models. Exit code 1 if there is one.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.judge.verdicts import FAILURES
from relayout.targets.target import TARGETS

ENDED = "ended the process"
FAILED = FAILURES | {ENDED}
SHOWN_EVERY = 1000
"""Models after which the counts so far are shown, since a run takes hours."""


@dataclass(slots=True)
class Tally:
    """How many models each road has done what to."""

    models: int = 0
    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    reasons: Counter[tuple[str, str, str]] = field(default_factory=Counter)

    def add(self, record: dict[str, str]) -> None:
        road, kind, reason = (record[key] for key in ("road", "kind", "reason"))
        self.counts[road, kind] += 1
        self.reasons[road, kind, reason] += bool(reason)
        if kind in FAILED:
            print(json.dumps(record), flush=True)

    def show(self, reasons: int) -> None:
        print(f"{self.models} models", flush=True)
        for (road, kind), count in sorted(self.counts.items()):
            print(f"{road}: {count} {kind}")
        found = Counter({key: n for key, n in self.reasons.items() if key[1] not in FAILED})
        for (road, kind, reason), count in (+found).most_common(reasons):
            print(f"  {count} x {road}, {kind}: {reason}")


def main() -> int:
    """Ctrl-C ends the run and shows what was counted so far."""
    options = _options()
    tally = Tally()
    with contextlib.suppress(KeyboardInterrupt):
        for record in _records(options, tally):
            tally.add(record)
    tally.show(options.reasons)
    return 1 if any(kind in FAILED for _, kind in tally.counts) else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0, help="of the first model")
    parser.add_argument("--targets", nargs="*", default=sorted(TARGETS))
    parser.add_argument("--compile", type=int, default=4, help="every so many models; 0: none")
    parser.add_argument("--tune", type=int, default=0, help="with kernels chosen, likewise")
    parser.add_argument("--verify", type=int, default=50, help="with verification, likewise")
    parser.add_argument("--output", type=Path, default=Path("judged"), help="folder for failures")
    parser.add_argument("--reasons", type=int, default=30, help="how many reasons are printed")
    return parser.parse_args()


def _records(options: argparse.Namespace, tally: Tally) -> Iterator[dict[str, str]]:
    """What workers report; one that ends is followed by another, from the next model on."""
    seed, end = options.seed, options.seed + options.models
    while seed < end:
        every = (options.compile, options.tune, options.verify)
        settings = [str(setting) for setting in (seed, end, *every, options.output)]
        command = [sys.executable, "-m", "benchmarks.judge.worker", *settings, *options.targets]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as worker:
            doing = "starting"
            for line in worker.stdout or ():
                record = json.loads(line)
                if "doing" in record:
                    seed, doing = record["seed"], record["doing"]
                    tally.models += doing == "generating"
                    if doing == "generating" and tally.models % SHOWN_EVERY == 0:
                        tally.show(options.reasons)
                else:
                    yield record
        if worker.returncode == 0:
            return
        reason = f"seed {seed}: exit code {worker.returncode}"
        kind = "dropped" if doing == "generating" else ENDED
        yield {"road": doing, "kind": kind, "reason": reason}
        seed += 1


if __name__ == "__main__":
    raise SystemExit(main())
