"""Cuts a model into steps: groups as the fastest kernels there are, all else as it stands."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache, partial

import onnx_ir as ir
import torch

from relayout.backends.torch.choose.bench import PAUSE, Bench, Candidate, Work
from relayout.backends.torch.choose.candidates import forms_of, key_of, products_of
from relayout.backends.torch.choose.native_algorithm import fastest_kind
from relayout.backends.torch.choose.parts import GroupPart, borders_of, parts_of, runs_of
from relayout.backends.torch.choose.prices import Prices
from relayout.backends.torch.modules.loading import check_device
from relayout.backends.torch.program.program import Program, ProgramStep
from relayout.backends.torch.providers.conv_form import ConvForm
from relayout.backends.torch.providers.inductor import (
    EagerRun,
    KernelRun,
    can_be_kernel,
    is_pool,
)
from relayout.backends.torch.providers.library_group import LibraryGroup
from relayout.backends.torch.providers.native_region import (
    NativeSpan,
    native_failure,
    native_mark,
    native_regions,
)
from relayout.backends.torch.providers.orders import FIRST, LAST, Order, Turn
from relayout.fusion.groups import Abilities

KERNELS = Abilities(prologues=False, siblings=False, repeats=False)
"""A kernel of torch's libraries reads tensors as they are stored and makes one product; no two
steps do the same node."""

SLOW = 1e-3
"""Seconds from which on it is worth while on a CPU to have Inductor compile a kernel."""


@dataclass(frozen=True, slots=True)
class Choice:
    """How one group is realised, and what was measured of it."""

    group: str
    chosen: str
    seconds: dict[str, float]


def device_name(device: str) -> str:
    """The device as measurements are kept by: what it is, and which torch."""
    check_device(device)
    if device.startswith("cuda"):
        return f"{torch.cuda.get_device_name()}-torch{torch.__version__}"
    capability = torch.backends.cpu.get_cpu_capability()
    return f"cpu-{capability}-{torch.get_num_threads()}threads-torch{torch.__version__}"


@cache
def can_build() -> bool:
    """Whether C++ kernels can be built here."""
    return native_failure() is None


@dataclass(frozen=True, slots=True)
class Forms:
    """The fastest ways to run a convolution, one for each way to store what it reads and writes."""

    key: str
    options: tuple[ConvForm, ...]
    """The first is channels last throughout."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The parts of a program, where they are timed, and what was chosen so far."""

    parts: list[GroupPart]
    bench: Bench
    forms: dict[ir.Node, Forms] = field(default_factory=dict)
    """By the last node of a group."""
    _told: dict[ir.Node, Choice] = field(default_factory=dict)
    _turns: dict[str, Choice] = field(default_factory=dict)
    _choices: list[Choice] = field(default_factory=list)

    @classmethod
    def of(cls, program: Program, groups: Iterable[Sequence[ir.Node]]) -> Plan:
        prices = Prices.of(device_name(program.device))
        graph = program.model.graph
        where = (program.device, program.precision)
        bench = Bench(*where, graph.opset_imports, prices, program.dims)
        return cls(parts_of(graph, groups), bench)

    def library_steps(self) -> list[ProgramStep]:
        """Steps with the library's fused kernels; forms it lacks as they are, other nodes alone."""
        steps: list[ProgramStep] = []
        for part in self.parts:
            chosen = None if part.fused is None else self._library_kernel(part.fused)
            if chosen is not None:
                steps.append(ProgramStep(part.nodes, chosen))
            elif part.fused is not None:
                steps.append(ProgramStep(part.nodes))
            else:
                steps += [ProgramStep((node,)) for node in part.nodes]
        return steps

    def with_regions(self, steps: Sequence[ProgramStep]) -> list[ProgramStep]:
        """Programs of C++ kernels in the place of steps where that is faster."""
        fused = {part.nodes[-1]: part.fused for part in self.parts if part.fused is not None}
        prices = self.bench.prices
        if self.bench.device != "cpu" or self.bench.precision.reduced != ir.DataType.FLOAT:
            return list(steps)
        if not can_build():
            return list(steps)
        whole: list[ProgramStep] = []
        for region in native_regions(steps, fused, partial(fastest_kind, prices)):
            if isinstance(region, ProgramStep):
                whole.append(region)
                continue
            native, library = region.candidates
            work = Work(_region_key(region), region.nodes, region.operands, region.results)
            chosen = self._fastest(work, [native, library], pause=PAUSE)
            whole += region.steps if chosen is library else [ProgramStep(region.nodes, chosen)]
        return whole

    def with_kernels(self, steps: Sequence[ProgramStep]) -> list[ProgramStep]:
        """What is left of groups, and pools on CUDA, as kernels of Inductor if that is faster."""
        whole: list[ProgramStep] = []
        is_cuda = self.bench.device.startswith("cuda")
        for run in runs_of(steps, self.parts):
            nodes = tuple(node for step in run for node in step.nodes)
            is_wanted = can_be_kernel(nodes) if len(run) > 1 else is_cuda and is_pool(run[0])
            chosen = self._run_kernel(nodes) if is_wanted else None
            whole += run if chosen is None else [ProgramStep(nodes, chosen)]
        return whole

    def tell(self, steps: Sequence[ProgramStep], turned: Iterable[tuple[ir.Value, Order]]) -> None:
        """Note which forms convolutions have, and which tensors are copied into which order."""
        self._turns.clear()
        for value, order in turned:
            key = self._turn_key(value)
            if key is not None:
                self._turns[key] = Choice(key, f"to {order}", self.bench.prices.seconds[key])
        for step in steps:
            forms = self.forms.get(step.nodes[-1])
            if forms is not None and isinstance(step.realisation, ConvForm):
                known = self.bench.prices.seconds.get(forms.key, {})
                self._told[step.nodes[-1]] = Choice(forms.key, step.realisation.name, known)

    @property
    def choices(self) -> list[Choice]:
        return [*self._told.values(), *self._turns.values(), *self._choices]

    def turn_seconds(self, value: ir.Value) -> tuple[float, float]:
        """What it takes to store a tensor of four axes channels last, and channels first."""
        key = self._turn_key(value)
        if key is None:
            return 0.0, 0.0
        turns = (Turn(value, FIRST, LAST), Turn(value, LAST, FIRST))
        last, first = self.bench.seconds(Work(key, (), (value,), (value,)), turns)
        return last, first

    def _turn_key(self, value: ir.Value) -> str | None:
        """None where both orders are the same."""
        lengths = self.bench.shape(value) or ()
        if lengths[1] == 1 or math.prod(lengths[2:]) == 1:
            return None
        return f"turn {'x'.join(map(str, lengths))} {self.bench.precision.reduced.name}"

    def pool_seconds(self, node: ir.Node) -> tuple[float, float]:
        """What a node takes channels last, and channels first."""
        key = _run_key((node,), self.bench)
        work = Work(key, (node,), *borders_of((node,)))
        last, first = self.bench.seconds(work, (EagerRun(), EagerRun(FIRST)))
        return last, first

    def _library_kernel(self, group: LibraryGroup) -> Candidate | None:
        """The fastest product, or form that is channels last; all other forms are noted."""
        operands = [group.source] + ([] if group.residual is None else [group.residual])
        key = key_of(group, self.bench)
        work = Work(key, group.nodes, tuple(dict.fromkeys(operands)), (group.output,))
        products = products_of(group, self.bench)
        if products:
            return self._fastest(work, products)
        forms = forms_of(group, self.bench)
        if not forms:
            return None
        self.bench.know(work, forms)
        best = _fastest_forms(key, forms, self.bench.prices)
        self.forms[group.nodes[-1]] = Forms(key, best)
        return self.forms[group.nodes[-1]].options[0]

    def _run_kernel(self, nodes: tuple[ir.Node, ...]) -> Candidate | None:
        """The kernel of Inductor for some nodes, or None where they are as fast one by one."""
        work = Work(_run_key(nodes, self.bench), nodes, *borders_of(nodes))
        eager, kernel = EagerRun(), KernelRun(work.operands, work.results)
        if self.bench.device == "cpu" and self.bench.seconds(work, [eager])[0] < SLOW:
            return None
        chosen = self._fastest(work, [eager, kernel])
        return None if chosen is eager else chosen

    def _fastest(
        self, work: Work, candidates: Sequence[Candidate], *, pause: float = 0.0
    ) -> Candidate:
        chosen = self.bench.fastest(work, candidates, pause=pause)
        known = self.bench.prices.seconds.get(work.key, {})
        self._choices.append(Choice(work.key, chosen.name, known))
        return chosen


def _fastest_forms(key: str, forms: Sequence[ConvForm], prices: Prices) -> tuple[ConvForm, ...]:
    """The fastest form of each pair of orders that can be run; the first pair's in any case."""
    by_orders: dict[tuple[Order, Order], dict[str, ConvForm]] = {}
    for form in forms:
        by_orders.setdefault((form.reads, form.writes), {})[form.name] = form
    best = [
        named[prices.best(key, tuple(named)) or next(iter(named))] for named in by_orders.values()
    ]
    known = prices.seconds.get(key, {})
    return (best[0], *(form for form in best[1:] if math.isfinite(known[form.name])))


def _region_key(region: NativeSpan) -> str:
    """A region by its kernels, its steps and the orders that these would have."""
    native = region.native
    described = [native_mark(), native.entries, native.results, *_unusual(region.steps)]
    text = json.dumps(described, default=str)
    return f"region of {len(region.nodes)} nodes {hashlib.sha256(text.encode()).hexdigest()[:16]}"


def _unusual(steps: Sequence[ProgramStep]) -> list[str]:
    """The convolutions that are not channels last throughout."""
    forms = [(n, step.realisation) for n, step in enumerate(steps)]
    return [
        f"{number} {form.name}"
        for number, form in forms
        if isinstance(form, ConvForm) and (form.reads, form.writes) != (LAST, LAST)
    ]


def _run_key(nodes: Sequence[ir.Node], bench: Bench) -> str:
    """Nodes by their operators and results, and by all else that is said of them."""
    shapes = [f"{node.op_type}{bench.shape(node.outputs[0])}" for node in nodes]
    told = [
        (
            [str(bench.shape(value)) for value in node.inputs],
            sorted(f"{name} {attribute.value}" for name, attribute in node.attributes.items()),
        )
        for node in nodes
    ]
    detail = hashlib.sha256(json.dumps(told).encode()).hexdigest()[:8]
    return f"{bench.precision.reduced.name} {' '.join(shapes)} {detail}"
