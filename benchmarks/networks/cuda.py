"""Ways to run a network on an NVIDIA GPU, each as one CUDA graph."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

import relayout.backends.torch.compiling as relayout_torch
from benchmarks.networks.export import exported_by_either
from benchmarks.networks.families import Example
from benchmarks.resnet101.measure import Run
from relayout.backends.torch.choose.choices import Choice
from relayout.backends.torch.choose.tuning import tuned
from relayout.backends.torch.modules.loading import compile_program
from relayout.backends.torch.runtime.graph import captured_graph

LAST = torch.channels_last
RELAYOUT, EAGER, INDUCTOR, FREEZING, FROZEN, TUNED = (
    "relayout",
    "eager",
    "Inductor",
    "Inductor, freezing",
    "Inductor, frozen",
    "Inductor, max-autotune",
)
"""Freezing is an option of torch.compile; frozen is what the setting for all of torch makes."""


@dataclass(frozen=True, slots=True)
class Setting:
    """What a network is measured under."""

    dtype: str = "float16"
    exporter: str = "script"


@dataclass(frozen=True, slots=True)
class Ready:
    """A way to run a network, and what was chosen for it, in words."""

    run: Run
    choices: tuple[str, ...] = ()
    exporting: float = 0.0
    """Seconds until the ONNX model was there that the way begins with."""


@dataclass(frozen=True, slots=True)
class Made:
    """A way that is ready to be timed."""

    ready: Ready
    graph: Any
    seconds: float
    """What it took to make it."""
    result: torch.Tensor


def made(way: str, example: Example, setting: Setting) -> Made:
    """A way to run a network, compiled and captured."""
    begun = time.monotonic()
    ready = WAYS[way](example, setting)
    result = ready.run().float().clone()
    graph, _ = captured_graph(ready.run)
    torch.cuda.synchronize()
    return Made(ready, graph, time.monotonic() - begun - ready.exporting, result)


def kernels(run: Run, most: int) -> dict[str, float]:
    """Microseconds in each kernel of a run, the longest first."""
    from torch.profiler import ProfilerActivity, profile  # noqa: PLC0415 - takes a second

    with profile(activities=[ProfilerActivity.CUDA]) as profiler:
        run()
        torch.cuda.synchronize()
    found = {
        f"{event.count} x {event.key}": event.self_device_time_total
        for event in profiler.key_averages()
    }
    longest = sorted(found.items(), key=lambda item: -item[1])[:most]
    return {name: round(taken, 1) for name, taken in longest}


def reference(example: Example) -> torch.Tensor:
    """The result in float32, with products in float32 too."""
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
    module = example.module.eval().float().cuda()
    with torch.no_grad():
        result: torch.Tensor = module(*(x.cuda() for x in example.inputs))
    return result.float()


def _inputs(example: Example, setting: Setting) -> list[torch.Tensor]:
    own = [x.cuda() for x in example.inputs]
    dtype = getattr(torch, setting.dtype)
    half = [x.to(dtype) if x.is_floating_point() else x for x in own]
    return [x.contiguous(memory_format=LAST) if x.dim() == 4 else x for x in half]


def _module(example: Example, setting: Setting) -> Any:
    dtype = getattr(torch, setting.dtype)
    return example.module.eval().to(dtype).cuda().to(memory_format=LAST)


def _eager(example: Example, setting: Setting) -> Ready:
    module, given = _module(example, setting), _inputs(example, setting)
    return Ready(lambda: module(*given))


def _inductor(*, freezing: bool, mode: str = "default") -> Callable[[Example, Setting], Ready]:
    def make(example: Example, setting: Setting) -> Ready:
        from torch._inductor import list_mode_options  # noqa: PLC0415 - takes seconds

        module, given = _module(example, setting), _inputs(example, setting)
        # Ways that differ in options alone are kept apart by these, but not by settings around.
        options = {**list_mode_options(mode), "freezing": freezing}
        compiled = torch.compile(module, options=options)
        return Ready(lambda: compiled(*given))

    return make


def _frozen(example: Example, setting: Setting) -> Ready:
    import torch._inductor.config as settings  # noqa: PLC0415 - takes seconds

    module, given = _module(example, setting), _inputs(example, setting)
    compiled = torch.compile(module)

    def run() -> Any:
        with torch.no_grad(), settings.patch(freezing=True):
            return compiled(*given)

    return Ready(run)


def _relayout(example: Example, setting: Setting) -> Ready:
    """From the ONNX model, without its own CUDA graph, since all ways are captured alike."""
    plain = Example(example.module.float().cpu(), example.inputs)
    begun = time.monotonic()
    given = exported_by_either(plain, setting.exporter)
    exporting = time.monotonic() - begun
    program = relayout_torch.program_of(given, device="cuda", dtype=setting.dtype)
    program, choices = tuned(program)
    model = compile_program(program)
    forward = getattr(model.forward, "forward", model.forward)
    inputs = _inputs(example, setting)

    def run() -> Any:
        with torch.inference_mode():
            return forward(model.weights, *inputs)[0]

    return Ready(run, tuple(dict.fromkeys(map(_words, choices))), exporting)


def _words(choice: Choice) -> str:
    times = (f"{name} {1e6 * seconds:.1f} us" for name, seconds in choice.seconds.items())
    return ", ".join([f"{choice.group}: {choice.chosen}", *times])


WAYS: dict[str, Callable[[Example, Setting], Ready]] = {
    RELAYOUT: _relayout,
    FREEZING: _inductor(freezing=True),
    FROZEN: _frozen,
    INDUCTOR: _inductor(freezing=False),
    TUNED: _inductor(freezing=True, mode="max-autotune-no-cudagraphs"),
    EAGER: _eager,
}
