"""Our groups beside those of TVM's FuseOps: python -m benchmarks.fuse_oracle [GRAPHS [FIRST_SEED]]

Draws random graphs over all kinds of operators, with extra outputs and depth limits, and counts
those that TVM partitions differently. Needs the extra `tvm`; ends with 1 if there is a difference.
"""

from __future__ import annotations

import sys
import time

from tests.fusion.random_expressions import drawn, groups_of
from tests.fusion.tvm_oracle import groups_by_tvm

GRAPHS = 3000


def main() -> int:
    count, first = ([int(word) for word in sys.argv[1:]] + [GRAPHS, 0][len(sys.argv) - 1 :])[:2]
    started = time.perf_counter()
    fused, different = 0, []
    for seed in range(first, first + count):
        graph = drawn(seed)
        theirs = groups_by_tvm(graph)
        fused += any(len(group) > 1 for group in theirs)
        if groups_of(graph) != theirs:
            different.append(seed)
    seconds = time.perf_counter() - started
    print(f"{count} graphs, {fused} with fusion, {len(different)} differences, {seconds:.0f} s")
    if different:
        print(f"seeds that differ: {different[:20]}")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
