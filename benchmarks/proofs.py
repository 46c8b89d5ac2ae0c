"""Models as given and optimised: how many results are proved, and what a proof costs.

python -m benchmarks.proofs PATH ... [--only NAME ...] [--target NAME ...] [--minimize count]
python -m benchmarks.proofs PATH --made FOLDER

PATH is a zoo as for `benchmarks.zoo`. A line for each model that is not proved, or only under a
condition; then, a line a target, how many are 'identical', 'equal modulo ledger', the same
file as given or not proved, and the seconds of CPU of all proofs and of all optimisations. Without
`--minimize` each target has the objective that is its own. With `--made` the files of the same name
in a folder are judged, whatever tool made them.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.zoo import Entry, entries
from relayout.api import optimize
from relayout.targets.target import TARGETS
from relayout.verify.proof.attempt import attempted
from relayout.verify.proof.verdict import ModelProof

NOT_OPTIMISED = ("torch",)
"""Targets that only a backend compiles for."""


@dataclass
class Tally:
    """What came of the models of one target."""

    counts: Counter[str] = field(default_factory=Counter)
    proving: float = 0.0
    optimising: float = 0.0

    def add(self, name: str, proof: ModelProof, seconds: float) -> None:
        self.proving += seconds
        finding = finding_of(proof)
        self.counts[finding] += 1
        if finding == "not proved" or proof.conditions:
            print(f"{name}: {proof.summary()} ({seconds:.1f} s)", flush=True)

    def text(self) -> str:
        counts = ", ".join(f"{count} {finding}" for finding, count in self.counts.most_common())
        return f"{counts}; proofs {self.proving:.1f} s, optimising {self.optimising:.1f} s"


def finding_of(proof: ModelProof) -> str:
    if not proof.holds:
        return "not proved"
    how = "equal modulo ledger" if proof.ledger else "identical"
    return f"{how} under conditions" if proof.conditions else how


def timed(given: Path, made: Path) -> tuple[ModelProof, float]:
    start = time.process_time()
    proof = attempted(given, made)
    return proof, time.process_time() - start


def of_target(zoo: Zoo, target: str, minimize: str | None) -> Tally:
    tally = Tally()
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "made.onnx"
        for entry in zoo.entries(Path(folder)):
            start = time.process_time()
            result = optimize(entry.file, made, target=target, minimize=minimize, verify=False)
            tally.optimising += time.process_time() - start
            if not result.changed:
                tally.counts["as given"] += 1
                continue
            tally.add(f"{target} {entry.name}", *timed(entry.file, made))
    return tally


def of_folder(zoo: Zoo, folder: Path) -> Tally:
    tally = Tally()
    with tempfile.TemporaryDirectory() as scratch:
        for entry in zoo.entries(Path(scratch)):
            made = folder / f"{entry.name}.onnx"
            if made.exists():
                tally.add(entry.name, *timed(entry.file, made))
    return tally


@dataclass(frozen=True)
class Zoo:
    paths: list[Path]
    only: list[str]

    def entries(self, scratch: Path) -> Iterator[Entry]:
        for path in self.paths:
            yield from entries(path, self.only, scratch)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("paths", type=Path, nargs="+")
    parser.add_argument("--only", nargs="+", default=[])
    targets = [name for name in TARGETS if name not in NOT_OPTIMISED]
    parser.add_argument("--target", nargs="+", default=targets)
    parser.add_argument("--minimize")
    parser.add_argument("--made", type=Path)
    options = parser.parse_args()
    zoo = Zoo(options.paths, options.only)
    if options.made:
        print(f"{options.made.name}: {of_folder(zoo, options.made).text()}")
        return
    for target in options.target:
        print(f"{target}: {of_target(zoo, target, options.minimize).text()}", flush=True)


if __name__ == "__main__":
    main()
