"""Mutation testing: python -m benchmarks.mutation rules|lowerings|proof [--mutants N] [--seed S]

Draws small changes of the functions of a room (an operator, a constant, a condition, a call), and
runs for each the tests that call the changed function, in turns, until one fails. All of it in one
process: functions get the changed code, files stay as they are. Writes one line of JSON a mutant,
and prints how many were caught, and the others.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

from benchmarks.mutation.mutants import Mutant
from benchmarks.mutation.plugin import CAUGHT, OVERTIME, MutationRun

ROOT = Path(__file__).parents[2]
EQUIVALENT = dict(
    line.split("\t")
    for line in Path(__file__).with_name("equivalent.txt").read_text(encoding="utf-8").splitlines()
)
"""Mutants that compute the same, each with the reason."""
PACKAGE = ROOT / "src" / "relayout"


@dataclass(frozen=True, slots=True)
class Room:
    """A folder whose code is changed, and the tests that should notice."""

    folders: tuple[str, ...]
    tests: tuple[str, ...]


ROOMS = {
    "rules": Room(
        ("ops",),
        ("tests/ops", "tests/rewrite", "tests/assign", "tests/graph", "tests/infer"),
    ),
    "lowerings": Room(
        ("backends/torch/lower",),
        ("tests/backends/torch/test_operators.py", "tests/backends/torch/test_edges.py"),
    ),
    "proof": Room(("verify/proof",), ("tests/verify/proof", "tests/verify/test_large.py")),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("room", choices=sorted(ROOMS))
    parser.add_argument("--mutants", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=60, help="of CPU for one mutant, at most")
    parser.add_argument("--report", type=Path, default=Path("mutants.jsonl"))
    parser.add_argument("--only", default="", help="mutants whose line holds this text")
    parser.add_argument("--kept", type=Path, help="file that keeps which test calls what")
    parser.add_argument("--every", type=int, default=1, help="run one test of so many")
    parser.add_argument("--again", type=Path, help="report whose mutants are tried that were left")
    parser.add_argument("--tests", nargs="*", help="in place of those of the room")
    given = parser.parse_args()
    room = ROOMS[given.room]
    folders = [PACKAGE / folder for folder in room.folders]
    drawn = (given.mutants, given.seed, given.seconds)
    again = _left(given.again)
    run = MutationRun(
        ROOT, folders, *drawn, given.report, given.only, given.kept, given.every, again
    )
    tests = [str(ROOT / test) for test in given.tests or room.tests]
    pytest.main(["-q", "-p", "no:cacheprovider", "-p", "no:xdist", *tests], plugins=[run])
    _show(run)


def _left(report: Path | None) -> frozenset[str]:
    """The mutants that no test noticed."""
    lines = [] if report is None else report.read_text(encoding="utf-8").splitlines()
    found = [json.loads(line) for line in lines]
    return frozenset(one["mutant"] for one in found if one["fate"] not in (CAUGHT, OVERTIME))


def _show(run: MutationRun) -> None:
    fates = Counter(fate for _, fate, _ in run.found)
    left = [(mutant, fate) for mutant, fate, _ in run.found if fate not in (CAUGHT, OVERTIME)]
    known = {mutant for mutant, _ in left if _without_line(mutant) in EQUIVALENT}
    caught, real = fates[CAUGHT] + fates[OVERTIME], len(run.found) - len(known)
    print(f"{len(run.found)} mutants, {len(known)} of them known to compute the same")
    print(f"{caught} of {real} caught ({100 * caught / max(real, 1):.1f} %)")
    for mutant, fate in left:
        reason = EQUIVALENT.get(_without_line(mutant), "")
        print(f"  {fate}: {mutant.text(ROOT)}" + f" ({reason})" * bool(reason))


def _without_line(mutant: Mutant) -> str:
    return f"{mutant.path.relative_to(ROOT)} {mutant.function}: {mutant.what}"


if __name__ == "__main__":
    main()
