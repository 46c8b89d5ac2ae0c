"""Times how work can be done, each candidate in a module of its own, on the device."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import Any, TypeAlias

import onnx_ir as ir
import torch

from relayout.backends.kept import cache_folder
from relayout.backends.locking import locked
from relayout.backends.torch.lower.registry import LOWERINGS
from relayout.backends.torch.modules.helpers import closure
from relayout.backends.torch.modules.loading import module_of
from relayout.backends.torch.modules.source import IMPORTS, written_preparation
from relayout.backends.torch.modules.weights import stored
from relayout.backends.torch.program.draft import WEIGHTS, ModuleDraft
from relayout.backends.torch.program.scope import Scope
from relayout.backends.torch.program.statements import indented
from relayout.backends.torch.providers.clock import cpu_clock
from relayout.backends.torch.providers.orders import FIRST, LAST, Order
from relayout.backends.torch.providers.prices import Price, Prices
from relayout.backends.torch.providers.provider import Candidate, Ordered
from relayout.backends.torch.providers.site import Site
from relayout.backends.torch.providers.work import Work
from relayout.backends.torch.runtime.graph import captured_graph
from relayout.backends.torch.runtime.model import as_tensor

LEAST_ROUNDS, MOST_ROUNDS = 7, 40
ENOUGH = 0.1
"""Seconds after which candidates have been run often enough."""

CANNOT = (RuntimeError, IndexError, ValueError)
"""What torch raises of work that it cannot do, or not with the lengths that are assumed."""

TimedRun: TypeAlias = Callable[[], Any]
CandidateTimer: TypeAlias = Callable[[Work, Sequence[Candidate], Site], list[Price]]
"""Times candidates for some work, all of them together."""


def time_candidates(work: Work, candidates: Sequence[Candidate], site: Site) -> list[Price]:
    """The time each candidate takes, run alternately; the reason for those that cannot run."""
    runs = [_ready(partial(_run_of, work, each, site)) for each in candidates]
    return time_runs(runs, site.device, work.pause)


@dataclass(frozen=True, slots=True)
class Bench:
    """Where candidates are timed, and what is known of them."""

    site: Site
    prices: Prices
    timer: CandidateTimer = time_candidates

    def fastest(self, work: Work, candidates: Sequence[Candidate]) -> Candidate:
        """The candidate to take: known from before, or timed now. The first if none can be run."""
        if len(candidates) == 1:
            return candidates[0]
        self.know(work, candidates)
        by_name = {candidate.name: candidate for candidate in candidates}
        known = self.prices.best(work.key(self.site), tuple(by_name))
        return by_name[known or candidates[0].name]

    def seconds(self, work: Work, candidates: Sequence[Candidate]) -> list[float]:
        """What each candidate takes."""
        self.know(work, candidates)
        known = self.prices.seconds(work.key(self.site))
        return [known[candidate.name] for candidate in candidates]

    def know(self, work: Work, candidates: Sequence[Candidate]) -> bool:
        """Time candidates now unless they were before, and return whether that was done."""
        key = work.key(self.site)
        if not self.prices.lacks(key, (candidate.name for candidate in candidates)):
            return False
        timed = self.timer(work, candidates, self.site)
        for candidate, price in zip(candidates, timed, strict=True):
            self.prices.learn(key, candidate.name, price)
        return True


def _ready(prepare: Callable[[], TimedRun]) -> TimedRun | str:
    """What can be run, or why the device cannot even prepare its weights."""
    try:
        return prepare()
    except CANNOT as error:
        return reason_of(error)


def reason_of(error: Exception) -> str:
    """The first line of an error."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__


def _run_of(work: Work, candidate: Candidate, site: Site) -> TimedRun:
    draft = ModuleDraft(LOWERINGS, site.precision)
    scope = Scope(draft, site.opsets)
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
    weights = SimpleNamespace(device=torch.device(site.device))
    for name, tensor in draft.weights.items():
        array = stored(tensor, site.precision).copy()
        setattr(weights, name, as_tensor(array, site.device))
    reads = candidate.reads if isinstance(candidate, Ordered) else None
    given = [_sample(value, reads or _usual_order(value), site) for value in work.operands]
    with torch.inference_mode():
        module.prepare(weights)
    return lambda: module.forward(weights, *given)


def _sample(value: ir.Value, order: Order, site: Site) -> Any:
    """Normal numbers; integers are 0, which is an index into whatever has elements."""
    dtype = getattr(torch, site.precision.name(value.dtype or ir.DataType.FLOAT))
    draw = torch.randn if dtype.is_floating_point else torch.zeros
    data = draw(site.shape(value) or (), device=site.device).to(dtype)
    is_last = data.dim() == 4 and order == LAST
    return data.contiguous(memory_format=torch.channels_last) if is_last else data


def _usual_order(value: ir.Value) -> Order:
    """Models are given their inputs channels first."""
    return FIRST if value.is_graph_input() else LAST


def time_runs(runs: Sequence[TimedRun | str], device: str, pause: float = 0.0) -> list[Price]:
    """The price of each run, timed alternately; a text in place of a run is why it cannot run."""
    ready = [run if isinstance(run, str) else _warmed(run, device) for run in runs]
    seconds: list[list[float]] = [[] for _ in runs]
    with alone_on(device):
        begun = time.perf_counter()
        for done in range(MOST_ROUNDS):
            if done >= LEAST_ROUNDS and time.perf_counter() - begun > ENOUGH:
                break
            for taken, run in zip(seconds, ready, strict=True):
                if not isinstance(run, str):
                    taken.append(_seconds(run, device, pause))
    return [
        Price.refused(run) if isinstance(run, str) else Price.of_runs(taken)
        for taken, run in zip(seconds, ready, strict=True)
    ]


@contextmanager
def alone_on(device: str) -> Iterator[None]:
    """Models that are compiled at the same time have their kernels timed one after the other."""
    folder = cache_folder()
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder / f"timing-{device.replace(':', '-')}.lock"):
        yield


def _warmed(run: TimedRun, device: str) -> TimedRun | str:
    """The run, on CUDA as a graph, or why the device cannot do it."""
    try:
        with torch.inference_mode():
            run()
            return captured(run) if device.startswith("cuda") else run
    except CANNOT as error:
        return reason_of(error)


def captured(run: TimedRun) -> TimedRun:
    """A run as one CUDA graph; what it reads and writes stays where it is."""
    graph, results = captured_graph(run)

    def replay() -> Any:
        graph.replay()
        return results

    return replay


def _seconds(run: TimedRun, device: str, pause: float) -> float:
    with torch.inference_mode():
        if device.startswith("cuda"):
            return _cuda_seconds(run)
        if pause:
            time.sleep(pause)
            run()
        clock = cpu_clock()
        since = clock()
        run()
        return clock() - since


def _cuda_seconds(run: TimedRun, repeats: int = 5) -> float:
    first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    first.record()
    for _ in range(repeats):
        run()
    last.record()
    torch.cuda.synchronize()
    return float(first.elapsed_time(last)) / 1e3 / repeats
