"""Whether a second run finds anything: python -m benchmarks.second_run [PATH] [--graphs N]

PATH is as for `benchmarks.zoo`; N random graphs of the tests are run as well. Every model is
optimised for every target (or `--targets`), by default and by each objective that the target has
(or what `--minimize` names), without verification, and its result once more. One line for each
result that a second run changes, with the figures (Transposes, bytes, nodes, nodes without a
kernel) as given, after one run and after two; totals last. The exit code is 0 if nothing changes.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

import relayout
from benchmarks.zoo import entries
from relayout.graph.io.sources import ModelSource
from relayout.ops.measure import Measure, Objective
from relayout.targets.target import TARGETS
from tests.suites.random_graphs import random_graph

Figures: TypeAlias = tuple[int, int, int, int]

DEFAULT = "default"


def models(options: argparse.Namespace, scratch: Path) -> Iterator[tuple[str, ModelSource]]:
    if options.path is not None:
        for entry in entries(options.path, options.only, scratch):
            yield entry.name, entry.file
    for seed in range(options.first_seed, options.first_seed + options.graphs):
        yield f"random_{seed}", random_graph(seed).model


def changed(model: ModelSource, target: str, objective: str | None) -> str | None:
    """What a second run changes, if it does, unless seconds ran out in the first."""
    once = relayout.optimize(model, target=target, minimize=objective, verify=False)
    again = relayout.optimize(once.model, target=target, minimize=objective, verify=False)
    if not again.changed or not once.choose.optimal:
        return None
    steps = (
        _figures(once.before, once.lacking[0]),
        _figures(once.after, once.lacking[1]),
        _figures(again.after, again.lacking[1]),
    )
    return f"{' -> '.join(map(str, steps))}, by {', '.join(again.applied) or 'shapes'}"


def _objectives(target: str, asked: list[str] | None) -> Iterator[tuple[str, str | None]]:
    """What is made least, in words and as `optimize` takes it: all, or those that are asked for."""
    offered = {DEFAULT: None, **{each.value: each.value for each in TARGETS[target].objectives}}
    for name, objective in offered.items():
        if asked is None or name in asked:
            yield name, objective


def _figures(measured: Measure, lacking: int) -> Figures:
    return measured.transposes, measured.bytes_moved, measured.nodes, lacking


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", type=Path, nargs="?")
    parser.add_argument("--only", nargs="*", default=[], help="names of models")
    parser.add_argument("--targets", nargs="+", default=list(TARGETS))
    parser.add_argument(
        "--minimize", nargs="+", choices=(DEFAULT, *(each.value for each in Objective))
    )
    parser.add_argument("--graphs", type=int, default=0, help="how many random graphs")
    parser.add_argument("--first-seed", type=int, default=0)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    total: Counter[str] = Counter()
    start = time.process_time()
    with tempfile.TemporaryDirectory() as scratch:
        for name, model in models(options, Path(scratch)):
            total.update(models=1)
            for target in options.targets:
                for words, objective in _objectives(target, options.minimize):
                    found = changed(model, target, objective)
                    total.update(results=1, changed=found is not None)
                    if found is not None:
                        print(f"{name} {target} {words}: {found}", flush=True)
    print(dict(total), f"{time.process_time() - start:.0f} s of CPU time")
    return 1 if total["changed"] else 0


if __name__ == "__main__":
    sys.exit(main())
