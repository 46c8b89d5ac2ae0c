"""Where regions of C++ kernels end: the operators that they lack, and what those take in torch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import onnx_ir as ir

from relayout.backends.torch.choose.bench import Bench
from relayout.backends.torch.choose.settings import TuningSettings
from relayout.backends.torch.choose.tuning import tuned
from relayout.backends.torch.compiling import program_of
from relayout.backends.torch.program.program import Program
from relayout.backends.torch.providers.eager import EagerRun
from relayout.backends.torch.providers.inductor_provider import InductorProvider
from relayout.backends.torch.providers.native_region import NativeRegion
from relayout.backends.torch.providers.prices import CANNOT_RUN
from relayout.backends.torch.providers.registry import enabled_providers
from relayout.backends.torch.providers.site import Site
from relayout.backends.torch.providers.work import RunWork


@dataclass(frozen=True, slots=True)
class RegionEnd:
    """An operator at which regions end."""

    operator: str
    nodes: int
    """How many nodes of it a region ends at, or begins after."""
    milliseconds: float
    """What these take in torch, one at a time."""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class RegionEnds:
    """The regions of a model, and the operators between them, those that take longest first."""

    regions: int
    inside: int
    """How many nodes regions hold."""
    nodes: int
    ends: tuple[RegionEnd, ...]


def region_ends(
    path: Path, dims: Mapping[str, int], settings: TuningSettings | None = None
) -> RegionEnds:
    """Where the regions of a model end, as chosen on this CPU, unless told otherwise no Inductor.

    Inductor may take a whole model, which then has no regions.
    """
    settings = settings or _without_inductor()
    program, _ = tuned(program_of(path, dims=dims), settings)
    native = [step for step in program.steps if isinstance(step.realisation, NativeRegion)]
    inside = {node for step in native for node in step.nodes}
    by_operator: dict[str, list[float]] = {}
    for node, seconds in _border(program, inside, settings):
        by_operator.setdefault(node.op_type, []).append(seconds)
    ends = [RegionEnd(name, len(each), 1e3 * sum(each)) for name, each in by_operator.items()]
    ends.sort(key=lambda end: -end.milliseconds)
    return RegionEnds(len(native), len(inside), len(list(program.model.graph)), tuple(ends))


def _without_inductor() -> TuningSettings:
    enabled = enabled_providers()
    return TuningSettings(tuple(each for each in enabled if not isinstance(each, InductorProvider)))


def _border(
    program: Program, inside: set[ir.Node], settings: TuningSettings
) -> Iterator[tuple[ir.Node, float]]:
    """The nodes beside regions, with the seconds they take; 0 where they cannot be timed alone."""
    graph = program.model.graph
    site = Site(program.device, program.precision, graph.opset_imports, program.dims)
    bench = Bench(site, settings.prices_of(program.device), settings.timer)
    for node in graph:
        if node in inside or not _touches(node, inside):
            continue
        (seconds,) = bench.seconds(RunWork.of((node,)), [EagerRun()])
        yield node, 0.0 if seconds == CANNOT_RUN else seconds
    bench.prices.save()


def _touches(node: ir.Node, nodes: set[ir.Node]) -> bool:
    """Whether a node reads a result of some nodes, or gives them an operand."""
    reads = any(value is not None and value.producer() in nodes for value in node.inputs)
    return reads or any(use.node in nodes for value in node.outputs for use in value.uses())
