"""Times of a model on CUDA with fused kernels and without, taken in turns."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeAlias

import torch

from relayout.backends.options import CompileOptions
from relayout.backends.torch.compiling import compile_model
from relayout.report.trace import Span

RELAYOUT = "relayout"

Ran: TypeAlias = Callable[[str, Span], None]
"""Called with the way and the time of each run."""


@dataclass(frozen=True, slots=True)
class Timed:
    """How long one way takes, in milliseconds: the middle, and the quickest and slowest tenth."""

    way: str
    median: float
    low: float
    high: float

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def time_model(
    path: Path,
    feeds: Mapping[str, Any],
    *,
    device: str,
    dtype: str | None,
    rounds: int,
    dims: Mapping[str, int],
    stage: Callable[[str], None],
    ran: Ran = lambda _way, _span: None,
) -> list[Timed]:
    """A model compiled with fused kernels and without."""
    stage("compiling")
    fused = compile_model(path, CompileOptions(device, dtype, dims=dims))
    plain = compile_model(path, CompileOptions(device, dtype, tune=False))
    tensors = {name: torch.as_tensor(array).to(device) for name, array in feeds.items()}
    runs: dict[str, Callable[[], Any]] = {
        RELAYOUT: lambda: fused(tensors),
        "torch, nothing fused": lambda: plain(tensors),
    }
    stage("timing")
    return _in_turns(runs, rounds, ran)


def _in_turns(runs: Mapping[str, Callable[[], Any]], rounds: int, ran: Ran) -> list[Timed]:
    """One run of each, again and again: what disturbs the machine disturbs all alike."""
    taken: dict[str, list[float]] = {way: [] for way in runs}
    for _ in range(rounds + 1):
        for way, run in runs.items():
            since = time.perf_counter()
            run()
            torch.cuda.synchronize()
            spent = time.perf_counter() - since
            taken[way].append(1e3 * spent)
            ran(way, Span("run", since, spent))
    return [_timed(way, sorted(times[1:])) for way, times in taken.items()]


def _timed(way: str, times: list[float]) -> Timed:
    tenth = len(times) // 10
    return Timed(way, statistics.median(times), times[tenth], times[-1 - tenth])
