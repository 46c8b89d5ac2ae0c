"""Models of a zoo as .tflite files: python -m benchmarks.litert_zoo PATH [--only NAME ...]

PATH is as for `benchmarks.zoo`. One line a model: what stands in the way, or the TRANSPOSEs, the
parts that XNNPACK runs, the largest error and, with `--time`, the time on one core relative to ONNX
Runtime's on the same inputs, run in turn. `--skip` leaves models out. Totals come last; a
geometric mean over the models that were timed is part of them.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

from benchmarks.zoo import Entry, entries

PAIRS = 7


def convert(entry: Entry, output: Path, rest: list[str]) -> dict[str, Any]:
    """What the command line reports about one model."""
    command = [sys.executable, "-m", "relayout", "compile", str(entry.file), "--target", "litert"]
    arguments = ["-o", str(output), "--json", *entry.arguments(), *rest]
    output.unlink(missing_ok=True)
    done = subprocess.run([*command, *arguments], capture_output=True, text=True, check=False)
    record: dict[str, Any] = json.loads(done.stdout) if done.stdout else {}
    lines = done.stderr.strip().splitlines() or ["no message"]
    reason = lines[-1].removeprefix("relayout: ")
    return {"verdict": reason, "details": {}, **record}


def feeds_of(entry: Entry) -> dict[str, Any]:
    random = np.random.default_rng(0)
    return {
        name: random.normal(size=shape).astype(dtype)
        if dtype.startswith("float")
        else random.integers(0, 2, shape).astype(dtype)
        for name, (dtype, shape) in entry.row.get("feeds", {}).items()
    }


def ratio(entry: Entry, file: Path) -> float:
    """How much longer LiteRT takes than ONNX Runtime: the median of pairs."""
    from relayout.backends.litert.interpreting import LiteModel  # noqa: PLC0415 - in an extra

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(
        str(entry.file), options, providers=["CPUExecutionProvider"]
    )
    feeds, model = feeds_of(entry), LiteModel(file)
    runs = (lambda: model(feeds), lambda: session.run(None, feeds))
    times = [[seconds(run) for run in runs] for _ in range(PAIRS + 1)][1:]
    return statistics.median(own / other for own, other in times)


def seconds(run: Callable[[], object]) -> float:
    since = time.thread_time()
    run()
    return max(time.thread_time() - since, 1e-9)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("path", type=Path)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--skip", nargs="*", default=[])
    parser.add_argument("--time", action="store_true")
    own, rest = sys.argv[1:], []
    if "--" in own:
        own, rest = own[: own.index("--")], own[own.index("--") + 1 :]
    options = parser.parse_args(own)
    total: Counter[str] = Counter()
    ratios: list[float] = []
    with tempfile.TemporaryDirectory() as scratch:
        output = Path(scratch) / "out.tflite"
        for entry in entries(options.path, options.only, Path(scratch)):
            if entry.name in options.skip:
                continue
            record = convert(entry, output, rest)
            good, details = output.exists(), record["details"]
            total.update(models=1, good=good, **(details if good else {}))
            took = ""
            if good and options.time:
                ratios.append(ratio(entry, output))
                took = f", {ratios[-1]:.2f} of ONNX Runtime's time"
            counts = ", ".join(f"{count} {name}" for name, count in details.items())
            mark = "ok" if good else "--"
            print(f"{mark} {entry.name}: {counts}: {record['verdict']}{took}", flush=True)
    print(dict(total))
    if ratios:
        print(f"geometric mean of times: {statistics.geometric_mean(ratios):.3f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
