"""Random graphs of every operator: python -m benchmarks.random_graphs [GRAPHS [FIRST_SEED]]

Checks each graph as the tests do and prints, for each objective, what failed and the Transposes and
bytes given and left.
"""

from __future__ import annotations

import sys
import time
import warnings

from relayout.ops.measure import Objective
from tests.suites.optimising import Optimised
from tests.suites.test_random_graphs import check_random_graph

GRAPHS = 1000


def checked(objective: Objective, seeds: range) -> tuple[list[Optimised], list[str]]:
    """The results of the graphs that passed, and what went wrong with the others."""
    results, failures = [], []
    for seed in seeds:
        try:
            results.append(check_random_graph(seed, objective))
        except Exception as error:  # noqa: BLE001 - one failure must not hide the next
            failures.append(f"{seed}: {type(error).__name__}: {' '.join(str(error).split())[:300]}")
    return results, failures


def main() -> None:
    warnings.simplefilter("ignore")
    count, first = (*map(int, sys.argv[1:]), *(GRAPHS, 0)[len(sys.argv) - 1 :])
    for objective in Objective:
        start = time.process_time()
        results, failures = checked(objective, range(first, first + count))
        given = sum(result.before.transposes for result in results)
        left = sum(result.after.transposes for result in results)
        bytes_given = sum(result.before.bytes_moved for result in results)
        bytes_left = sum(result.after.bytes_moved for result in results)
        print(
            f"fewest {objective.value}: {len(results)} graphs, {len(failures)} failures, "
            f"{given} -> {left} Transposes, {bytes_given} -> {bytes_left} bytes, "
            f"{time.process_time() - start:.0f} s",
            flush=True,
        )
        for failure in failures:
            print(f"  {failure}")


if __name__ == "__main__":
    main()
