"""Many small random problems against brute force: any number, any seed.

python benchmarks/assign_random.py [COUNT] [SEED]
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from random import Random
from time import process_time

sys.path.insert(0, str(Path(__file__).parents[1]))

from relayout.assign.certificate import verify
from relayout.assign.encoding import certificate
from relayout.assign.strategies.exact import solve
from tests.assign.random_problems import CHOICES, SHAPES, brute_force, random_problem, size


def main(count: int, seed: int) -> int:
    start, random = process_time(), Random(seed)
    kinds: Counter[str] = Counter()
    wrong = checked = 0
    while checked < count:
        problem = random_problem(random, list(SHAPES.values())[checked % len(SHAPES)])
        if size(problem) > CHOICES:
            continue
        checked += 1
        assignment = solve(problem)
        kinds.update(part.kind for part in assignment.parts)
        faults = verify(certificate(assignment), problem)
        if assignment.cost != brute_force(problem) or not assignment.optimal or faults:
            wrong += 1
            print(f"wrong: {assignment}\n{faults}\n{problem}")
    print(f"{checked:,} problems, {wrong} wrong, {process_time() - start:.1f} s of CPU")
    print(", ".join(f"{number:,} {kind}" for kind, number in sorted(kinds.items())))
    return min(wrong, 1)


if __name__ == "__main__":
    given = [*sys.argv[1:], *("20000", "0")[len(sys.argv) - 1 :]]
    sys.exit(main(int(given[0]), int(given[1])))
