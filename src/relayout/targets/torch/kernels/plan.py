"""Cuts a model into steps: groups as the fastest kernels there are, all else as it stands."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import onnx_ir as ir
import torch

from relayout.graph.read import shape_of
from relayout.targets.torch.dtypes import Precision
from relayout.targets.torch.kernels.fused import Fused, fused_groups
from relayout.targets.torch.kernels.inductor import (
    ConvKernel,
    EagerRun,
    KernelRun,
    borders_of,
    is_pool,
    pointwise_runs,
)
from relayout.targets.torch.kernels.library import (
    CudnnConv,
    GemmConv,
    Linear,
    OneDnnConv,
    PlainConv,
)
from relayout.targets.torch.kernels.native_region import Region, native_regions, native_source
from relayout.targets.torch.kernels.prices import Prices
from relayout.targets.torch.kernels.trial import Bench, Candidate
from relayout.targets.torch.kernels.window import Sliding, sliding_of
from relayout.targets.torch.kernels.winograd import prefers_winograd
from relayout.targets.torch.program import Step
from relayout.targets.torch.runtime.native import native_library

TENSOR_CORE_DEPTHS = (4, 8)
"""Numbers of channels that tensor cores take without a slower way round."""


@dataclass(frozen=True, slots=True)
class Choice:
    """How one group is realised, and what was measured of it."""

    group: str
    chosen: str
    seconds: dict[str, float]


def device_name(device: str) -> str:
    """The device as measurements are kept by: what it is, and which torch."""
    if device.startswith("cuda"):
        return f"{torch.cuda.get_device_name()}-torch{torch.__version__}"
    capability = torch.backends.cpu.get_cpu_capability()
    return f"cpu-{capability}-{torch.get_num_threads()}threads-torch{torch.__version__}"


def library_steps(
    model: ir.Model, device: str, precision: Precision
) -> tuple[tuple[Step, ...], list[Choice]]:
    """Steps with the library's fused kernels, and what was chosen for each group."""
    prices = Prices.of(device_name(device))
    bench = Bench(device, precision, model.graph.opset_imports, prices)
    realised: dict[ir.Node, Step] = {}
    inner: set[ir.Node] = set()
    choices: list[Choice] = []
    for group in fused_groups(model.graph):
        chosen = _chosen(group, bench, choices)
        if chosen is None:
            continue
        realised[group.nodes[-1]] = Step(group.nodes, chosen)
        inner.update(group.nodes[:-1])
    steps = tuple(realised.get(node, Step((node,))) for node in model.graph if node not in inner)
    if device.startswith("cuda"):
        steps = _with_kernels(steps, bench, choices)
    prices.save()
    return steps, choices


def _chosen(group: Fused, bench: Bench, choices: list[Choice]) -> Candidate | None:
    """The realisation of a group; what was timed for it goes to the choices."""
    if not group.is_conv:
        return Linear(group) if len(group.nodes) > 1 else None
    window = sliding_of(group.anchor)
    candidates = [] if window is None else _candidates(group, window, bench.device, bench.precision)
    if window is None or not candidates:
        return None
    key = key_of(group, window, bench.precision)
    chosen = bench.fastest(key, group.nodes, _operands(group), (group.output,), candidates)
    choices.append(Choice(key, chosen.name, bench.prices.seconds.get(key, {})))
    return chosen


def planned(
    model: ir.Model, device: str, precision: Precision
) -> tuple[tuple[Step, ...], list[Choice]]:
    """The steps of a model with the fastest kernels for each group, and what was chosen."""
    steps, choices = library_steps(model, device, precision)
    if device != "cpu" or precision.reduced != ir.DataType.FLOAT or not can_build():
        return steps, choices
    prices = Prices.of(device_name(device))
    bench = Bench(device, precision, model.graph.opset_imports, prices)
    groups = {group.nodes[-1]: group for group in fused_groups(model.graph)}
    whole: list[Step] = []
    for part in native_regions(steps, groups, lambda window: prefers_winograd(window, prices)):
        if isinstance(part, Step):
            whole.append(part)
            continue
        key = _region_key(part)
        chosen = bench.fastest(key, part.nodes, part.operands, part.results, part.candidates)
        choices.append(Choice(key, chosen.name, prices.seconds.get(key, {})))
        whole.append(Step(part.nodes, chosen))
    prices.save()
    return tuple(whole), choices


@cache
def can_build() -> bool:
    """Whether C++ kernels can be built here."""
    return native_library(native_source()) is not None


def _region_key(region: Region) -> str:
    """A region by its steps, wherever they lie in memory."""
    text = json.dumps([region.native.entries, region.native.results], default=str)
    return f"region of {len(region.nodes)} nodes {hashlib.sha256(text.encode()).hexdigest()[:16]}"


def key_of(group: Fused, window: Sliding, precision: Precision) -> str:
    """What groups that take the same time have in common."""
    activation = group.activation
    return " ".join(
        (
            f"{'x'.join(map(str, window.source))}->{'x'.join(map(str, window.result))}",
            f"k{window.kernel} s{window.strides} p{window.pads} d{window.dilations}",
            f"g{window.groups} {precision.reduced.name}",
            f"bias{int(group.bias is not None)} sum{int(group.residual is not None)}",
            f"[{activation.low}, {activation.high}] gelu{int(activation.gelu)}",
        )
    )


def _operands(group: Fused) -> Sequence[ir.Value]:
    operands = [group.source] + ([] if group.residual is None else [group.residual])
    return list(dict.fromkeys(operands))


def _candidates(
    group: Fused, window: Sliding, device: str, precision: Precision
) -> list[Candidate]:
    if window.padding is None or group.activation.gelu:
        return []
    if device.startswith("cuda"):
        return cuda_candidates(group, window)
    activation = group.activation
    has_kernel = activation.is_none or activation.is_relu or activation.is_bounded
    is_there = torch.backends.mkldnn.is_available() and precision.reduced == ir.DataType.FLOAT
    if not (has_kernel and is_there):
        return [PlainConv(group, window)]
    return [OneDnnConv(group, window), PlainConv(group, window)]


def cuda_candidates(group: Fused, window: Sliding) -> list[Candidate]:
    """Kernels that do all of a group at once, or else torch's own and the rest behind it."""
    if not group.activation.is_relu:
        return _cuda_candidates_in_parts(group, window)
    found: list[Candidate] = [CudnnConv(group, window)]
    if window.groups == 1:
        depths = [depth for depth in TENSOR_CORE_DEPTHS if depth > window.source[1]]
        found += [CudnnConv(group, window, depth) for depth in depths]
    if window.is_pointwise and group.residual is None:
        found.append(GemmConv(group, window))
    return found


def _cuda_candidates_in_parts(group: Fused, window: Sliding) -> list[Candidate]:
    """Where no kernel does all: a product or a convolution, and the rest behind it."""
    plain = PlainConv(group, window)
    if window.is_pointwise and group.bias is not None:
        return [GemmConv(group, window), plain]
    is_bare = group.activation.is_none and group.bias is None and group.residual is None
    return [plain] if is_bare else [ConvKernel(group, window)]


def _with_kernels(steps: Sequence[Step], bench: Bench, choices: list[Choice]) -> tuple[Step, ...]:
    """Pointwise nodes that follow each other, and pools, as one kernel where that is faster."""
    whole: list[Step] = []
    for run in pointwise_runs(steps):
        if len(run) == 1 and not is_pool(run[0]):
            whole += run
            continue
        nodes = tuple(node for step in run for node in step.nodes)
        operands, results = borders_of(nodes)
        key = _run_key(nodes, bench.precision)
        candidates: list[Candidate] = [EagerRun(), KernelRun(operands, results)]
        chosen = bench.fastest(key, nodes, operands, results, candidates)
        choices.append(Choice(key, chosen.name, bench.prices.seconds.get(key, {})))
        whole.append(Step(nodes, chosen))
    return tuple(whole)


def _run_key(nodes: tuple[ir.Node, ...], precision: Precision) -> str:
    shapes = [f"{node.op_type}{shape_of(node.outputs[0])}" for node in nodes]
    return f"{precision.reduced.name} {' '.join(shapes)}"
