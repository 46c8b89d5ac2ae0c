"""Measures all networks: `python -m benchmarks.resnet101 [--device cuda] [--quick]`."""

from __future__ import annotations

import argparse
from pathlib import Path

import onnxruntime
import torch

from benchmarks.resnet101 import cpu, cuda
from benchmarks.resnet101.results import Results

HERE = Path(__file__).parent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--quick", action="store_true", help="the most important ones only")
    parser.add_argument("--rounds", type=int, default=0, help="how often each way is timed")
    parser.add_argument(
        "--batch", type=int, action="append", help="1 and 16 on CPU and all on a GPU if left out"
    )
    parser.add_argument("--threads", type=int, default=2, help="on CPU")
    parser.add_argument("--limit", type=float, default=200.0, help="seconds in all, if quick")
    parser.add_argument("--output", type=Path, default=HERE / "RESULTS.md")
    options = parser.parse_args()
    versions = {"torch": torch.__version__, "ONNX Runtime": onnxruntime.__version__}
    if options.device == "cuda":
        batches = tuple(options.batch or cuda.BATCHES)
        only = f", batch {', '.join(map(str, batches))}" if options.batch else ""
        title = f"Four networks on a GPU, float16, milliseconds a batch{only}"
        results = Results(options.output, title, versions)
        limit = options.limit if options.quick else 3600.0
        rounds = options.rounds or 30
        cuda.run(results, quick=options.quick, limit=limit, rounds=rounds, batches=batches)
        return
    clock = "time on the core" if options.threads == 1 else "time on the clock"
    title = f"Four networks on a CPU, float32, {options.threads} thread(s), {clock}"
    results = Results(options.output, title, versions)
    batches = tuple(options.batch or (1, 16))
    rounds = options.rounds or 15
    cpu.run(results, quick=options.quick, rounds=rounds, batches=batches, threads=options.threads)


if __name__ == "__main__":
    main()
