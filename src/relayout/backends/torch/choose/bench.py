"""Times how groups can be realised, each in a module of its own, on the device."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, Protocol, runtime_checkable

import onnx_ir as ir
import torch

from relayout.backends.torch.choose.prices import Prices
from relayout.backends.torch.lower.registry import LOWERINGS
from relayout.backends.torch.modules.helpers import closure
from relayout.backends.torch.modules.loading import module_of
from relayout.backends.torch.modules.source import IMPORTS, written_preparation
from relayout.backends.torch.modules.weights import stored
from relayout.backends.torch.program.draft import WEIGHTS, ModuleDraft
from relayout.backends.torch.program.dtypes import Precision
from relayout.backends.torch.program.scope import Scope
from relayout.backends.torch.program.statements import indented
from relayout.backends.torch.providers.orders import FIRST, LAST, Order
from relayout.backends.torch.providers.window import (
    Lengths,
    Sliding,
    assumed_shape,
    sliding_of,
)
from relayout.backends.torch.runtime.graph import captured_graph
from relayout.backends.torch.runtime.model import as_tensor
from relayout.graph.read import shape_of

LEAST_ROUNDS, MOST_ROUNDS = 7, 40
ENOUGH = 0.1
"""Seconds after which candidates have been run often enough."""

PAUSE = 0.02
"""Seconds after which the threads of a candidate no longer wait for more."""


class Candidate(Protocol):
    """A realisation with a name under which its time is kept."""

    @property
    def name(self) -> str: ...

    def write(self, nodes: tuple[ir.Node, ...], scope: Scope) -> None: ...


@runtime_checkable
class Ordered(Protocol):
    """What reads tensors of four axes in a certain order."""

    @property
    def reads(self) -> Order: ...


@dataclass(frozen=True, slots=True)
class Work:
    """What candidates do: nodes that lead from operands to results."""

    key: str
    """By which what was measured is found again."""
    nodes: tuple[ir.Node, ...]
    operands: tuple[ir.Value, ...]
    results: tuple[ir.Value, ...]


@dataclass(frozen=True, slots=True)
class Bench:
    """Where and in which precision candidates are timed."""

    device: str
    precision: Precision
    opsets: Mapping[str, int]
    prices: Prices
    dims: Mapping[str, int] = field(default_factory=dict)
    """Lengths of symbols."""

    def shape(self, value: ir.Value | None) -> Lengths | None:
        """The lengths with which a value is timed."""
        return assumed_shape(value, self.dims)

    def window(self, node: ir.Node) -> Sliding | None:
        """How a convolution slides over its operand, of the lengths with which it is timed.

        Channels have to be known: they are those of the weights.
        """
        shapes = [shape_of(node.inputs[0]), shape_of(node.outputs[0])]
        if any(
            shape is None or not all(isinstance(n, int) for n in shape[1:2]) for shape in shapes
        ):
            return None
        return sliding_of(node, self.shape)

    def fastest(
        self, work: Work, candidates: Sequence[Candidate], *, pause: float = 0.0
    ) -> Candidate:
        """The candidate to take: known from before, or timed now. The first if none can be run.

        Candidates with threads of their own need a pause, or those of one disturb the other.
        """
        if len(candidates) == 1:
            return candidates[0]
        by_name = {candidate.name: candidate for candidate in candidates}
        known = self.prices.best(work.key, tuple(by_name))
        if known is None:
            self.learn(work, candidates, pause=pause)
            known = self.prices.best(work.key, tuple(by_name))
        return by_name[known or candidates[0].name]

    def seconds(self, work: Work, candidates: Sequence[Candidate]) -> list[float]:
        """What each candidate takes."""
        self.know(work, candidates)
        return [self.prices.seconds[work.key][candidate.name] for candidate in candidates]

    def know(self, work: Work, candidates: Sequence[Candidate]) -> None:
        """Time candidates now unless they were before."""
        known = self.prices.seconds.get(work.key, {})
        if any(candidate.name not in known for candidate in candidates):
            self.learn(work, candidates)

    def learn(self, work: Work, candidates: Sequence[Candidate], *, pause: float = 0.0) -> None:
        """Time candidates in turns."""
        runs = [self._attempt(work, candidate) for candidate in candidates]
        for candidate, seconds in zip(candidates, timed(runs, self.device, pause), strict=True):
            self.prices.learn(work.key, candidate.name, seconds)

    def _attempt(self, work: Work, candidate: Candidate) -> Callable[[], Any] | None:
        """A run of a candidate; None if the device cannot even prepare its weights."""
        try:
            return self._run_of(work, candidate)
        except RuntimeError:
            return None

    def _run_of(self, work: Work, candidate: Candidate) -> Callable[[], Any]:
        draft = ModuleDraft(LOWERINGS, self.precision)
        scope = Scope(draft, self.opsets)
        names = []
        for value in work.operands:
            names.append(draft.names.fresh(value.name or "x"))
            scope.forms[value] = names[-1]
        candidate.write(work.nodes, scope)
        lines = scope.finished(scope.returned(work.results))
        head = f"def forward({', '.join((WEIGHTS, *names))}):"
        functions = [*draft.functions, "\n".join([head, *indented(lines)])]
        parts = [IMPORTS, *closure(draft.helpers.values()).values()]
        module = module_of("\n\n".join([*parts, written_preparation(draft, functions), *functions]))
        weights = SimpleNamespace(device=torch.device(self.device))
        for name, tensor in draft.weights.items():
            array = stored(tensor, self.precision).copy()
            setattr(weights, name, as_tensor(array, self.device))
        reads = candidate.reads if isinstance(candidate, Ordered) else None
        given = [self._sample(value, reads or _usual_order(value)) for value in work.operands]
        with torch.inference_mode():
            module.prepare(weights)
        return lambda: module.forward(weights, *given)

    def _sample(self, value: ir.Value, order: Order) -> Any:
        dtype = getattr(torch, self.precision.name(value.dtype or ir.DataType.FLOAT))
        data = torch.randn(self.shape(value) or (), device=self.device).to(dtype)
        is_last = data.dim() == 4 and order == LAST
        return data.contiguous(memory_format=torch.channels_last) if is_last else data


def _usual_order(value: ir.Value) -> Order:
    """Models are given their inputs channels first."""
    return FIRST if value.is_graph_input() else LAST


def timed(runs: Sequence[Callable[[], Any] | None], device: str, pause: float = 0.0) -> list[float]:
    """The least seconds of each, taken in turns; infinite for what cannot run here.

    Whatever else the machine does only adds to a time, and the choice is kept for long.
    """
    ready = [None if run is None else _warmed(run, device) for run in runs]
    seconds: list[list[float]] = [[] for _ in runs]
    begun = time.perf_counter()
    for done in range(MOST_ROUNDS):
        if done >= LEAST_ROUNDS and time.perf_counter() - begun > ENOUGH:
            break
        for taken, run in zip(seconds, ready, strict=True):
            taken.append(float("inf") if run is None else _seconds(run, device, pause))
    return [min(taken) for taken in seconds]


def _warmed(run: Callable[[], Any], device: str) -> Callable[[], Any] | None:
    """The run, on CUDA as a graph, or None where the device has no such kernel."""
    try:
        with torch.inference_mode():
            run()
            return captured(run) if device.startswith("cuda") else run
    except RuntimeError:
        return None


def captured(run: Callable[[], Any]) -> Callable[[], Any]:
    """A run as one CUDA graph; what it reads and writes stays where it is."""
    graph, results = captured_graph(run)

    def replay() -> Any:
        graph.replay()
        return results

    return replay


def _seconds(run: Callable[[], Any], device: str, pause: float) -> float:
    with torch.inference_mode():
        if device.startswith("cuda"):
            return _cuda_seconds(run)
        if pause:
            time.sleep(pause)
            run()
        since = time.perf_counter()
        run()
        return time.perf_counter() - since


def _cuda_seconds(run: Callable[[], Any], repeats: int = 5) -> float:
    first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    first.record()
    for _ in range(repeats):
        run()
    last.record()
    torch.cuda.synchronize()
    return float(first.elapsed_time(last)) / 1e3 / repeats
