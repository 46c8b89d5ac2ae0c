"""Models in ONNX Runtime as given and optimised: python -m benchmarks.speed_zoo PATH

PATH is a zoo as for `benchmarks.zoo`, with an `index.json` that lists the inputs. One line a model
that changes: the median time of each, run alternately, and how many times as fast the optimised one
is; the geometric mean last. Fewer Transposes are not always less time: a runtime has its own ways
to get rid of them, and joins operators only where it finds them as it expects.
"""

from __future__ import annotations

import argparse
import math
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from benchmarks.einsum_ort import medians, session
from benchmarks.zoo import Entry, entries
from relayout.api import optimize


def feeds_of(row: dict[str, Any]) -> dict[str, Any]:
    """Random operands of the types, shapes and ranges that an index gives."""
    random = np.random.default_rng(0)
    ranges = row.get("integer_ranges", {})
    feeds: dict[str, Any] = {}
    for name, (dtype, shape) in row["feeds"].items():
        if np.issubdtype(np.dtype(dtype), np.floating):
            feeds[name] = random.standard_normal(shape).astype(dtype)
        else:
            low, high = ranges.get(name, (0, 2))
            feeds[name] = random.integers(low, high, shape).astype(dtype)
    return feeds


def ratio(entry: Entry, options: argparse.Namespace) -> float | None:
    """How many times as fast the optimised model is; None where it is the same."""
    result = optimize(entry.file, target=options.target, minimize=options.minimize, verify=False)
    if not result.changed:
        return None
    models = [onnx.load(entry.file), result.model]
    sessions = [session(model, options.threads) for model in models]
    given, optimised = medians(sessions, feeds_of(entry.row), options.seconds)
    print(
        f"{entry.name}: {result.before.transposes} -> {result.after.transposes} Transposes, "
        f"{given:.2f} -> {optimised:.2f} ms, {given / optimised:.2f} times as fast",
        flush=True,
    )
    return given / optimised


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", type=Path)
    parser.add_argument("--only", nargs="+", default=[])
    parser.add_argument("--target", default="onnx")
    parser.add_argument("--minimize", default="bytes")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=2.0, help="for each model")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        found = [
            ratio(each, options) for each in entries(options.path, options.only, Path(scratch))
        ]
    ratios = [each for each in found if each is not None]
    if ratios:
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        print(f"{len(ratios)} models changed, {mean:.2f} times as fast on the geometric mean")


if __name__ == "__main__":
    main()
