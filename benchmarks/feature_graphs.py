"""Orders that end in constants, against brute force: python -m benchmarks.feature_graphs [COUNT]

Random graphs of images that are merged into features and summed by constant weights. Counts where
more Transposes are left than trying every order of axes, of merged entries and of rows finds, and
where fewer are: features that are split, transposed and merged again are not tried there.
"""

from __future__ import annotations

import argparse

from relayout import optimize
from tests.suites.feature_graphs import feature_graph, fewest_transposes


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", type=int, nargs="?", default=1000)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    options = parser.parse_args()
    given = left = 0
    fewer = 0
    worse: list[int] = []
    for seed in range(options.first, options.first + options.count):
        graph = feature_graph(seed)
        result = optimize(graph.model, minimize="count", einsum=False, verify=False)
        given += result.before.transposes
        left += result.after.transposes
        tried = fewest_transposes(graph)
        fewer += result.after.transposes < tried
        if result.after.transposes > tried:
            worse.append(seed)
    found = f"more than brute force on {len(worse)}, fewer on {fewer}"
    print(f"{options.count} graphs: {given} -> {left} Transposes, {found}")
    if worse:
        print("seeds:", *worse)
    return 1 if worse else 0


if __name__ == "__main__":
    raise SystemExit(main())
