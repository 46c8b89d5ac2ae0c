"""The benchmark on an NVIDIA GPU, in half precision, each way as one CUDA graph."""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

import relayout.backends.torch.compiling as relayout_torch
from benchmarks.resnet101.forms import EagerNetwork, image_for, onnx_model
from benchmarks.resnet101.layers import Network
from benchmarks.resnet101.measure import Run, cuda_seconds, in_turns
from benchmarks.resnet101.networks import NETWORKS
from benchmarks.resnet101.results import RELAYOUT, Results, Row
from relayout.backends.torch.choose.choices import Choice
from relayout.backends.torch.choose.tuning import tuned
from relayout.backends.torch.modules.loading import compile_program
from relayout.backends.torch.runtime.graph import captured_graph

LAST = torch.channels_last
EAGER, EAGER_LAST = "eager NCHW", "eager NHWC"
INDUCTOR, FREEZING = "Inductor", "Inductor, freezing"
WITHOUT_GRAPH = ", no CUDA graph"


@dataclass
class Clock:
    """What is left of the time that the whole benchmark may take."""

    limit: float
    begun: float = field(default_factory=time.monotonic)

    @property
    def left(self) -> float:
        return self.limit - (time.monotonic() - self.begun)

    @contextlib.contextmanager
    def stopping(self) -> Iterator[None]:
        """Raise TimeoutError inside when the time is over."""

        def stop(_signal: int, _frame: Any) -> None:
            raise TimeoutError("no time left")

        before = signal.signal(signal.SIGALRM, stop)
        signal.alarm(max(1, int(self.left)))
        try:
            yield
        finally:
            signal.alarm(0)
            signal.signal(signal.SIGALRM, before)


@dataclass
class Case:
    """One network at one batch size on the GPU."""

    net: Network
    batch: int
    image: torch.Tensor
    reference: torch.Tensor

    @classmethod
    def of(cls, net: Network, batch: int) -> Case:
        image = torch.from_numpy(image_for(batch)).cuda()
        # Few images are enough to judge numbers by.
        with _exact_products():
            reference = EagerNetwork(net).cuda()(image[:8])
        return cls(net, batch, image, reference)

    def error(self, scores: torch.Tensor) -> float:
        apart = scores[:8].float() - self.reference
        return float(apart.norm() / self.reference.norm())


@contextlib.contextmanager
def _exact_products() -> Iterator[None]:
    """Products of float32 in float32, not in a shorter form."""
    before = torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
    try:
        yield
    finally:
        torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32 = before


def eager(case: Case, *, last: bool) -> Run:
    module = EagerNetwork(case.net).cuda().half()
    image = case.image.half()
    if last:
        module, image = module.to(memory_format=LAST), image.contiguous(memory_format=LAST)
    return lambda: module(image)


def inductor(case: Case, *, freezing: bool) -> Run:
    import torch._inductor.config as settings  # noqa: PLC0415 - takes seconds

    module = EagerNetwork(case.net).cuda().half().to(memory_format=LAST)
    image = case.image.half().contiguous(memory_format=LAST)
    torch._dynamo.reset()  # noqa: SLF001 - there is no public name
    compiled = torch.compile(module)
    with settings.patch(freezing=freezing):
        compiled(image)
    return lambda: compiled(image)


def with_relayout(case: Case) -> Run:
    """From the ONNX model, without its own CUDA graph, since all ways are captured alike."""
    given = onnx_model(case.net, case.batch)
    program, choices = tuned(relayout_torch.program_of(given, device="cuda", dtype="float16"))
    for text in dict.fromkeys(" ".join(_words(choice)) for choice in choices):
        print(f"    {text}", flush=True)
    model = compile_program(program)
    forward = getattr(model.forward, "forward", model.forward)
    image = case.image.half().contiguous(memory_format=LAST)
    return lambda: forward(model.weights, image)[0]


def _words(choice: Choice) -> list[str]:
    times = [f"{name} {1e6 * seconds:.0f} us" for name, seconds in choice.seconds.items()]
    return [choice.group, choice.chosen, *times]


WAYS: dict[str, Callable[[Case], Run]] = {
    RELAYOUT: with_relayout,
    EAGER_LAST: lambda case: eager(case, last=True),
    EAGER: lambda case: eager(case, last=False),
    INDUCTOR: lambda case: inductor(case, freezing=False),
    FREEZING: lambda case: inductor(case, freezing=True),
}

QUICK: tuple[tuple[str, int, tuple[str, ...]], ...] = (
    ("resnet101", 64, (FREEZING, INDUCTOR, EAGER_LAST, EAGER)),
    ("mobilenet_v2", 64, (FREEZING,)),
    ("convnext_tiny", 64, (FREEZING,)),
    ("resnet50", 64, (FREEZING,)),
    *((name, batch, (FREEZING,)) for batch in (16, 32, 1) for name in NETWORKS),
)
"""What is measured beside relayout, the most important first."""

BATCHES = (64, 32, 16, 1)
MINIMUM_LEFT = 8.0
"""Seconds without which nothing new is begun."""


@dataclass
class Ready:
    """A way to run a network: as it is, as a CUDA graph, and how far its numbers are off."""

    plain: Run
    graph: Any
    error: float


@dataclass
class Session:
    """Ways that have been made ready, so that none is twice."""

    results: Results
    rounds: int
    cases: dict[tuple[str, int], Case] = field(default_factory=dict)
    ready: dict[tuple[str, int, str], Ready] = field(default_factory=dict)
    turn: int = 0

    def measure(self, name: str, batch: int, ways: tuple[str, ...]) -> None:
        """Time ways side by side; one that fails is reported and left out."""
        self.turn += 1
        runs: dict[str, Run] = {}
        errors: dict[str, float] = {}
        for way in (RELAYOUT, *ways):
            made = self._made(name, batch, way)
            if made is not None:
                runs[way], runs[way + WITHOUT_GRAPH] = made.graph.replay, made.plain
                errors[way] = errors[way + WITHOUT_GRAPH] = made.error
        for way, times in in_turns(runs, cuda_seconds, self.rounds).items():
            self.results.add(Row(name, batch, way, times, errors[way], self.turn))

    def _made(self, name: str, batch: int, way: str) -> Ready | None:
        key = (name, batch, way)
        if key in self.ready:
            return self.ready[key]
        begun = time.monotonic()
        try:
            self.ready[key] = self._make(name, batch, way)
        except TimeoutError:
            raise
        except Exception as error:  # noqa: BLE001 - the other ways are still worth measuring
            self.results.note(f"{name} at batch {batch}, {way}: {_error_text(error)}")
            return None
        print(f"  {way} ready after {time.monotonic() - begun:.1f} s", flush=True)
        return self.ready[key]

    def _make(self, name: str, batch: int, way: str) -> Ready:
        if (name, batch) not in self.cases:
            self.cases[name, batch] = Case.of(NETWORKS[name](), batch)
        case = self.cases[name, batch]
        plain = WAYS[way](case)
        error = case.error(plain())
        graph, _ = captured_graph(plain)
        return Ready(plain, graph, error)


def run(
    results: Results, *, quick: bool, limit: float, rounds: int, batches: tuple[int, ...]
) -> None:
    torch.backends.cudnn.benchmark = True
    clock = Clock(limit)
    session = Session(results, rounds)
    others = tuple(way for way in WAYS if way != RELAYOUT)
    plan = QUICK if quick else [(n, b, others) for n in NETWORKS for b in BATCHES]
    for name, batch, ways in plan:
        if batch not in batches:
            continue
        if clock.left < MINIMUM_LEFT:
            results.note(f"no time left for {name} at batch {batch}")
            continue
        print(f"{name} at batch {batch}, {clock.left:.0f} s left", flush=True)
        try:
            with clock.stopping(), torch.no_grad():
                session.measure(name, batch, ways)
        except Exception as error:  # noqa: BLE001 - the rest is still worth measuring
            results.note(f"{name} at batch {batch}: {_error_text(error)}")


def _error_text(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
