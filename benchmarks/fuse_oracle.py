"""Our groups beside those of TVM's FuseOps: python -m benchmarks.fuse_oracle [GRAPHS [FIRST_SEED]]

Draws random graphs over all kinds of operators, with extra outputs and depth limits, and counts
those that TVM partitions differently. `--files` draws ONNX files of up to 100 nodes instead, and
compares both modes that follow TVM. Needs the extra `tvm`; ends with 1 if there is a difference.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Callable

import onnx

from relayout.fusion.groups import Limits
from relayout.fusion.partition import TVM, TVM_RELAX, partition
from relayout.graph.region import regions_of
from tests.fusion.onnx_oracle import Groups, groups_by_relax, groups_by_relay
from tests.fusion.random_expressions import drawn, groups_of
from tests.fusion.random_files import random_file
from tests.fusion.tvm_oracle import groups_by_tvm
from tests.rewrite.rewriting import to_ir

GRAPHS = 3000
DEPTHS = (256, 256, 2, 3, 5, 9)
FOLLOWED = {TVM.name: groups_by_relay, TVM_RELAX.name: groups_by_relax}


def graph(seed: int) -> tuple[bool, int]:
    """Whether TVM fuses anything in a graph, and whether we differ."""
    given = drawn(seed)
    theirs = groups_by_tvm(given)
    return any(len(group) > 1 for group in theirs), int(groups_of(given) != theirs)


def file(seed: int) -> tuple[bool, int]:
    """Whether TVM fuses anything in a file, and in how many modes we differ."""
    model, depth = random_file(seed), random.Random(seed).choice(DEPTHS)
    theirs = {mode: groups(model, depth) for mode, groups in FOLLOWED.items()}
    fused = any(len(group) > 1 for groups in theirs.values() for group in groups)
    return fused, sum(_ours(model, mode, depth) != groups for mode, groups in theirs.items())


def _ours(model: onnx.ModelProto, mode: str, depth: int) -> Groups:
    found = partition(next(regions_of(to_ir(model))), mode, Limits(max_depth=depth))
    return {frozenset(node.name or "" for node in group.nodes) for group in found.groups}


def counted(seeds: range, compared: Callable[[int], tuple[bool, int]]) -> int:
    started = time.perf_counter()
    fused, different = 0, {}
    for seed in seeds:
        is_fused, number = compared(seed)
        fused += is_fused
        if number:
            different[seed] = number
    seconds, total = time.perf_counter() - started, sum(different.values())
    print(f"{len(seeds)} graphs, {fused} with fusion, {total} differences, {seconds:.0f} s")
    if different:
        print(f"seeds that differ: {list(different)[:20]}")
    return 1 if different else 0


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("graphs", type=int, nargs="?", default=GRAPHS)
    parser.add_argument("first", type=int, nargs="?", default=0)
    parser.add_argument("--files", action="store_true")
    options = parser.parse_args()
    seeds = range(options.first, options.first + options.graphs)
    return counted(seeds, file if options.files else graph)


if __name__ == "__main__":
    sys.exit(main())
