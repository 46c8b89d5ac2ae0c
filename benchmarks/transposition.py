"""How fast large constants are transposed: python -m benchmarks.transposition

For some shapes, types and orders: GB/s of a plain copy of the array, of numpy's copy of the
transposed array, and of relayout's tiles on one core, in turns, the best of several; and of the
tiles on all cores, by the clock.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from relayout.graph.editing.contiguous import _copy_part, copy_into

ROUNDS = 5
CASES: tuple[tuple[tuple[int, ...], tuple[int, ...], str], ...] = (
    ((4096, 4096), (1, 0), "float32"),
    ((4096, 4096), (1, 0), "float16"),
    ((4096, 4096), (1, 0), "int8"),
    ((4000, 11008), (1, 0), "float32"),
    ((32, 1024, 1024), (0, 2, 1), "float32"),
    ((2048, 1024, 3, 3), (2, 3, 1, 0), "float32"),
    ((2048, 1024, 3, 3), (0, 2, 3, 1), "float32"),
)


def _best(run: Callable[[], Any], clock: Callable[[], float]) -> float:
    began = clock()
    run()
    return clock() - began


def rates(shape: tuple[int, ...], axes: tuple[int, ...], dtype: str) -> dict[str, float]:
    array = np.ones(shape, dtype)
    view = array.transpose(axes)
    result, copy = np.empty(view.shape, dtype), np.empty_like(array)
    ways: dict[str, tuple[Callable[[], Any], Callable[[], float]]] = {
        "copy": (lambda: np.copyto(copy, array), time.thread_time),
        "numpy": (lambda: np.copyto(result, view), time.thread_time),
        "tiles": (lambda: _copy_part(result, view), time.thread_time),
        "all cores": (lambda: copy_into(result, view), time.perf_counter),
    }
    seconds = dict.fromkeys(ways, math.inf)
    for _ in range(ROUNDS):
        for name, (run, clock) in ways.items():
            seconds[name] = min(seconds[name], _best(run, clock))
    return {name: array.nbytes / 1e9 / each for name, each in seconds.items()}


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_args()
    ratios = []
    for case in CASES:
        found = rates(*case)
        ratios.append(found["tiles"] / found["numpy"])
        told = ", ".join(f"{name} {rate:.2f}" for name, rate in found.items())
        print(f"{case[2]:8} {case[0]!s:22} {case[1]!s:14} GB/s: {told}", flush=True)
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    least = min(ratios)
    print(f"tiles: {mean:.2f} times as fast as numpy, by the geometric mean; least {least:.2f}")


if __name__ == "__main__":
    main()
