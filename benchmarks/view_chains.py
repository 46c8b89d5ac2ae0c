"""Random chains of views: python -m benchmarks.view_chains [CHAINS [FIRST_SEED]]

Checks every way to write each chain against numpy, symbolic ones at three coprime bindings and with
all lengths 1, and prints how many were wrong and how many views the chains took.
"""

from __future__ import annotations

import sys
import time
from collections import Counter

from tests.layout.test_strided_view import check_chain, random_chain

CHAINS = 100_000


def main() -> None:
    count, first = (*map(int, sys.argv[1:]), *(CHAINS, 0)[len(sys.argv) - 1 :])
    start = time.process_time()
    wrong: list[int] = []
    views: Counter[int] = Counter()
    for seed in range(first, first + count):
        try:
            views[check_chain(random_chain(seed))] += 1
        except AssertionError:
            wrong.append(seed)
    spread = ", ".join(f"{number} in {views[number]}" for number in sorted(views))
    print(
        f"{count} chains, {len(wrong)} wrong, views: {spread}, {time.process_time() - start:.0f} s"
    )
    if wrong:
        print(f"seeds: {wrong[:20]}")


if __name__ == "__main__":
    main()
