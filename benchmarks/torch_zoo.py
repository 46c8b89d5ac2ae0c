"""Compile every model of a zoo for torch: python -m benchmarks.torch_zoo PATH [--only NAME ...]

PATH holds an `index.json` with packed models and the `slim.py` that unpacks them. Each model is
compiled, run on drawn inputs and compared with ONNX Runtime without its optimisations: the largest
error relative to an output's scale, beside the error that is allowed: at least what ONNX Runtime's
own levels of optimisation differ by, where the index has that. One line a model, totals last.
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

import relayout
from benchmarks.zoo import Entry, entries
from relayout.verify.difference import TOLERANCES, difference

SILENT = 4
QUANTISED = 0.05
"""The tolerance of quantised models, about six steps of a byte at full scale."""


@dataclass(frozen=True)
class Row:
    """What is reported about one model."""

    name: str
    reason: str = ""
    error: float = math.inf
    allowed: float = 0.0
    compile_s: float = 0.0

    @property
    def good(self) -> bool:
        return not self.reason and self.error <= self.allowed


def feeds_of(row: dict[str, Any]) -> dict[str, Any]:
    """The inputs that an index asks for, the same ones each time."""
    rng, feeds = np.random.default_rng(0), {}
    for name, (dtype, shape) in row["feeds"].items():
        low, high = row.get("integer_ranges", {}).get(name, (0, 2))
        if name in row.get("fixed_values", {}):
            feeds[name] = np.full(shape, row["fixed_values"][name], dtype)
        elif np.dtype(dtype).kind in "iub":
            feeds[name] = rng.integers(low, high, shape).astype(dtype)
        elif "float_range" in row:
            first, last = row["float_range"][:2]
            feeds[name] = rng.integers(first, last, shape).astype(dtype)
        else:
            feeds[name] = rng.random(shape).astype(dtype)
    return feeds


def expected(path: Path, feeds: dict[str, Any]) -> list[Any]:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = SILENT
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return list(session.run(None, feeds))


def allowed(row: dict[str, Any]) -> float:
    """The usual tolerance, or what ONNX Runtime's own levels differ by where that is more.

    In a quantised model a sum that is rounded differently may move a number by a whole step.
    """
    noise = max((value for value in row.get("noise") or () if value is not None), default=0.0)
    usual = TOLERANCES["float16" if row["precision"] == "float16" else "float32"]
    return max(QUANTISED if is_quantised(row) else usual, noise)


def judge(entry: Entry, *, tune: bool) -> Row:
    feeds = feeds_of(entry.row)
    start = time.perf_counter()
    try:
        compiled = relayout.compile(entry.file, tune=tune, verify=False)
        seconds = time.perf_counter() - start
        results = list(compiled(feeds).values())
    except Exception as error:  # noqa: BLE001 - a benchmark counts failures of any kind
        return Row(entry.name, f"{type(error).__name__}: {' '.join(str(error).split())[:200]}")
    wanted = expected(entry.file, feeds)
    if is_quantised(entry.row):
        wanted, results = ([_real(value) for value in values] for values in (wanted, results))
    found = difference(wanted, results)
    return Row(entry.name, "", found.error, allowed(entry.row), seconds)


def is_quantised(row: dict[str, Any]) -> bool:
    return any(name.startswith(("Quant", "QLinear")) for name in row["ops"])


def _real(value: Any) -> Any:
    """Numbers of a quantised output, which may be a step apart."""
    return np.asarray(value).astype(np.float32)


def line(row: Row) -> str:
    if row.reason:
        return f"{row.name}: FAILED, {row.reason}"
    verdict = "ok" if row.good else "DIFFERS"
    return (
        f"{row.name}: {verdict}, error {row.error:.1e} of {row.allowed:.1e} allowed, "
        f"compiled in {row.compile_s:.1f} s"
    )


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("path", type=Path)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--tune", action="store_true", help="with the fastest kernels")
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as scratch:
        for entry in entries(options.path, options.only, Path(scratch)):
            rows.append(judge(entry, tune=options.tune))
            print(line(rows[-1]), flush=True)
    good = sum(row.good for row in rows)
    ran = sum(not row.reason for row in rows)
    print(f"{len(rows)} models, {ran} run, {good} within tolerance")
    return 0 if good == len(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
