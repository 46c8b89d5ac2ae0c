"""Measures networks: `python -m benchmarks.resnet101 [--device cuda] [--quick] [--document]`."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import onnxruntime
import torch

from benchmarks.resnet101 import cpu, cuda, document
from benchmarks.resnet101.networks import NETWORKS
from benchmarks.resnet101.results import Results, machine_text, put_section

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
    parser.add_argument(
        "--document", action="store_true", help="only the table of the document on automatic NHWC"
    )
    options = parser.parse_args()
    versions = {"torch": torch.__version__, "ONNX Runtime": onnxruntime.__version__}
    if options.document or not options.quick:
        print_document_table(options, versions)
    if not options.document:
        measure_all(options, versions)


def print_document_table(options: argparse.Namespace, versions: dict[str, str]) -> None:
    """Quick: small images in small batches, without a compiler."""
    batches = tuple(options.batch or ((1, 2) if options.quick else document.PUBLISHED))
    rounds = options.rounds or (3 if options.quick else 10)
    setting = document.Setting(options.device, batches, rounds)
    if options.quick:
        setting = replace(setting, ways=(document.EAGER,), side=64)
    torch.backends.cudnn.benchmark = True
    torch.set_num_threads(options.threads)
    lines = []
    for line in document.measured(NETWORKS["resnet101"](), setting):
        print(line, flush=True)
        lines.append(line)
    text = [machine_text(versions), "", *document.table(lines)]
    print("\n".join(text))
    if not options.quick:
        kind = str(setting.dtype).removeprefix("torch.")
        title = f"ResNet-101 as in the document on automatic NHWC, {options.device}, {kind}"
        put_section(options.output, title, text)


def measure_all(options: argparse.Namespace, versions: dict[str, str]) -> None:
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
