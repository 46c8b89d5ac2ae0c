"""All backend node tests fed in other orders: python -m benchmarks.wrapped [STRIDE]

Prints, for each variant and objective, how many tests were wrapped, what failed, and the Transposes
and bytes given and left.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Sequence

from relayout.ops.measure import Objective
from tests.suites.optimising import Optimised
from tests.suites.test_wrapped_backend import NODE_TESTS, check_wrapped, wrapped_case
from tests.suites.wrapping import VARIANTS, Variant


def measured(
    variant: Variant, objective: Objective, names: Sequence[str]
) -> tuple[list[Optimised], list[str]]:
    """The results of the tests that passed, and what went wrong with the others."""
    results, failures = [], []
    for name in names:
        found = wrapped_case(name, variant)
        if found is None:
            continue
        try:
            results.append(check_wrapped(found, objective))
        except Exception as error:  # noqa: BLE001 - one failure must not hide the next
            failures.append(f"{name}: {type(error).__name__}: {' '.join(str(error).split())[:300]}")
    return results, failures


def main() -> None:
    warnings.simplefilter("ignore")
    stride = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    for variant in VARIANTS:
        for objective in Objective:
            start = time.process_time()
            results, failures = measured(variant, objective, NODE_TESTS[::stride])
            given = sum(result.before.transposes for result in results)
            left = sum(result.after.transposes for result in results)
            bytes_given = sum(result.before.bytes_moved for result in results)
            bytes_left = sum(result.after.bytes_moved for result in results)
            print(
                f"{variant.id}, fewest {objective.value}: {len(results)} tests, "
                f"{len(failures)} failures, {given} -> {left} Transposes, "
                f"{bytes_given} -> {bytes_left} bytes, {time.process_time() - start:.0f} s",
                flush=True,
            )
            for failure in failures:
                print(f"  {failure}")


if __name__ == "__main__":
    main()
