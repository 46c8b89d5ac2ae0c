"""The benchmark on a CPU, in float32, one request at a time."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
import onnxruntime
import torch

import relayout
from benchmarks.resnet101.forms import EagerNetwork, image_for, onnx_model
from benchmarks.resnet101.layers import Array, Network
from benchmarks.resnet101.measure import Run, cpu_seconds, in_turns, wall_seconds
from benchmarks.resnet101.networks import NETWORKS
from benchmarks.resnet101.results import RELAYOUT, Results, Row

ORT, OPENVINO = "ONNX Runtime", "OpenVINO"


@dataclass(frozen=True, slots=True)
class Case:
    net: Network
    model: onnx.ModelProto
    image: Array
    threads: int


def with_ort(case: Case) -> Run:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = case.threads
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    session = onnxruntime.InferenceSession(case.model.SerializeToString(), options)
    return lambda: session.run(None, {case.net.INPUT: case.image})[0]


def with_openvino(case: Case) -> Run:
    import openvino  # noqa: PLC0415 - not installed everywhere

    core = openvino.Core()
    settings = {
        "INFERENCE_NUM_THREADS": case.threads,
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_PRECISION_HINT": "f32",
    }
    compiled = core.compile_model(core.read_model(case.model.SerializeToString()), "CPU", settings)
    request = compiled.create_infer_request()
    return lambda: next(iter(request.infer([case.image]).values()))


def with_eager(case: Case, *, last: bool) -> Run:
    module = EagerNetwork(case.net)
    image = torch.from_numpy(case.image)
    if not last:
        return lambda: module(image).numpy()
    module = module.to(memory_format=torch.channels_last)
    return lambda: module(image.contiguous(memory_format=torch.channels_last)).numpy()


def with_inductor(case: Case, *, freezing: bool) -> Run:
    import torch._inductor.config as settings  # noqa: PLC0415 - takes seconds

    torch._dynamo.reset()  # noqa: SLF001 - there is no public name
    compiled = torch.compile(EagerNetwork(case.net).to(memory_format=torch.channels_last))
    image = torch.from_numpy(case.image)

    def run() -> Any:
        return compiled(image.contiguous(memory_format=torch.channels_last)).numpy()

    with settings.patch(freezing=freezing):
        run()
    return run


def with_relayout(case: Case) -> Run:
    model = relayout.compile(case.model, verify=False)
    return lambda: model(case.image)[case.net.OUTPUT]


WAYS: dict[str, Callable[[Case], Run]] = {
    RELAYOUT: with_relayout,
    ORT: with_ort,
    OPENVINO: with_openvino,
    "eager NHWC": lambda case: with_eager(case, last=True),
    "eager NCHW": lambda case: with_eager(case, last=False),
    "Inductor": lambda case: with_inductor(case, freezing=False),
    "Inductor, freezing": lambda case: with_inductor(case, freezing=True),
}
QUICK_WAYS = (RELAYOUT, ORT, OPENVINO)


def run(
    results: Results, *, quick: bool, rounds: int, batches: tuple[int, ...], threads: int
) -> None:
    """With one thread, time on the core is taken, which other processes do not disturb."""
    torch.set_num_threads(threads)
    seconds_of = cpu_seconds if threads == 1 else wall_seconds
    for batch in batches:
        for name in NETWORKS:
            net = NETWORKS[name]()
            case = Case(net, onnx_model(net, batch), image_for(batch), threads)
            with torch.no_grad():
                runs, errors = _ready(results, case, QUICK_WAYS if quick else tuple(WAYS))
                for way, times in in_turns(runs, seconds_of, rounds).items():
                    results.add(Row(name, batch, way, times, errors[way]))


def _ready(
    results: Results, case: Case, ways: tuple[str, ...]
) -> tuple[dict[str, Run], dict[str, float]]:
    runs: dict[str, Run] = {}
    errors: dict[str, float] = {}
    reference = EagerNetwork(case.net).double()(torch.from_numpy(case.image[:1]).double()).numpy()
    for way in ways:
        begun = time.monotonic()
        try:
            runs[way] = WAYS[way](case)
            scores = np.asarray(runs[way]())[:1]
        except (ImportError, RuntimeError) as error:
            runs.pop(way, None)
            results.note(f"{case.net.name}, {way}: {' '.join(str(error).split())[:200]}")
            continue
        errors[way] = float(np.linalg.norm(scores - reference) / np.linalg.norm(reference))
        print(f"  {way} ready after {time.monotonic() - begun:.1f} s", flush=True)
    return runs, errors
