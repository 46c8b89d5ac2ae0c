"""Cuts a model into steps: groups as the fastest kernels there are, all other nodes alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import onnx_ir as ir

from relayout.backends.torch.choose.bench import Bench
from relayout.backends.torch.choose.choices import Choice, OfferedCandidate, PricedCandidate
from relayout.backends.torch.choose.copies import OrderCopyWork
from relayout.backends.torch.choose.notices import Notices
from relayout.backends.torch.choose.parts import GroupPart, parts_of, runs_of
from relayout.backends.torch.choose.settings import TuningSettings
from relayout.backends.torch.lower.registry import SPELT_OUT
from relayout.backends.torch.program.program import EAGER, Program, ProgramStep
from relayout.backends.torch.providers.conv_form import ConvForm
from relayout.backends.torch.providers.eager import EagerRun
from relayout.backends.torch.providers.library import Linear, PlainConv
from relayout.backends.torch.providers.library_group import LibraryGroup
from relayout.backends.torch.providers.orders import FIRST, Order
from relayout.backends.torch.providers.prices import CANNOT_RUN, Prices
from relayout.backends.torch.providers.provider import Candidate, Provider
from relayout.backends.torch.providers.site import Site
from relayout.backends.torch.providers.work import GroupWork, RegionWork, RunWork, Work
from relayout.fusion.groups import Abilities

KERNELS = Abilities(prologues=False, siblings=False, repeats=False)
"""A kernel of torch's libraries reads tensors as they are stored and makes one product; no two
steps do the same node."""


@dataclass(frozen=True, slots=True)
class Forms:
    """The fastest ways to run a convolution, one for each way to store what it reads and writes."""

    work: GroupWork
    offers: tuple[OfferedCandidate, ...]
    """All that there are."""
    options: tuple[ConvForm, ...]
    """The first is channels last throughout."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The parts of a program, the providers of kernels for them, and what was chosen so far."""

    parts: list[GroupPart]
    bench: Bench
    providers: tuple[Provider, ...]
    notices: Notices = field(default_factory=Notices)
    forms: dict[ir.Node, Forms] = field(default_factory=dict)
    """By the last node of a group."""
    _convolutions: dict[ir.Node, Choice] = field(default_factory=dict)
    _copies: dict[str, Choice] = field(default_factory=dict)
    _choices: list[Choice] = field(default_factory=list)

    @classmethod
    def of(
        cls,
        program: Program,
        groups: Iterable[Sequence[ir.Node]],
        settings: TuningSettings | None = None,
    ) -> Plan:
        given = settings or TuningSettings()
        graph = program.model.graph
        site = Site(program.device, program.precision, graph.opset_imports, program.dims)
        bench = Bench(site, given.prices_of(program.device), given.timer)
        notices = Notices()
        providers = given.providers_here()
        working = tuple(each for each in providers if not notices.of_fault(each, site))
        return cls(parts_of(graph, groups), bench, working, notices)

    @property
    def site(self) -> Site:
        return self.bench.site

    @property
    def prices(self) -> Prices:
        return self.bench.prices

    @property
    def choices(self) -> list[Choice]:
        return [*self._convolutions.values(), *self._copies.values(), *self._choices]

    def add_choice(self, choice: Choice) -> None:
        self._choices.append(choice)

    # -- steps -----------------------------------------------------------------------------------

    def library_steps(self) -> list[ProgramStep]:
        """Groups around a convolution or a product as kernels; all other nodes alone."""
        steps: list[ProgramStep] = []
        for part in self.parts:
            chosen = None if part.fused is None else self._group_kernel(part.fused)
            if chosen is not None:
                steps.append(ProgramStep(part.nodes, chosen))
            elif part.fused is not None:
                steps.append(ProgramStep(part.nodes))
            else:
                steps += [ProgramStep((node,)) for node in part.nodes]
        return steps

    def plain_steps(self) -> list[ProgramStep]:
        """Every node as an operator of torch, biases with what they are added to.

        Convolutions have their weights channels last.
        """
        steps: list[ProgramStep] = []
        for part in self.parts:
            plain = None if part.fused is None else self._plain(part.fused)
            if plain is None:
                steps += [self._alone(node) for node in part.nodes]
            else:
                steps.append(ProgramStep(part.nodes, plain))
        return steps

    def _alone(self, node: ir.Node) -> ProgramStep:
        """A node as an operator of torch; an attention as products where that is faster."""
        is_spelt = (node.domain, node.op_type) in SPELT_OUT
        chosen = self._run_kernel(RunWork.of((node,))) if is_spelt else None
        return ProgramStep((node,)) if chosen is None else ProgramStep((node,), chosen)

    def _plain(self, group: LibraryGroup) -> Candidate | None:
        if not group.is_conv:
            return Linear(group)
        window = self.site.window(group.anchor)
        if window is None or window.padding is None:
            return None
        return PlainConv(group, window)

    def with_regions(self, steps: Sequence[ProgramStep]) -> list[ProgramStep]:
        """Runs of steps as one kernel, where a provider has such and it is faster."""
        groups = {part.nodes[-1]: part.fused for part in self.parts if part.fused is not None}
        current = list(steps)
        for provider in self.providers:
            found = provider.regions(current, groups, self.site, self.prices)
            current = [step for each in found for step in self._region_steps(each)]
        return current

    def with_kernels(self, steps: Sequence[ProgramStep]) -> list[ProgramStep]:
        """What is left of groups as one kernel, where a provider has one and it is faster."""
        whole: list[ProgramStep] = []
        for run in runs_of(steps, self.parts):
            nodes = tuple(node for step in run for node in step.nodes)
            is_open = len(run) > 1 or (len(nodes) == 1 and run[0].realisation is EAGER)
            chosen = self._run_kernel(RunWork.of(nodes)) if is_open else None
            whole += run if chosen is None else [ProgramStep(nodes, chosen)]
        return whole

    # -- memory formats --------------------------------------------------------------------------

    def note_formats(
        self, steps: Sequence[ProgramStep], copied: Iterable[tuple[ir.Value, Order]]
    ) -> None:
        """Note which forms convolutions have, and which tensors are copied into which order."""
        self._copies.clear()
        for value, order in copied:
            work = OrderCopyWork.of(value, self.site)
            if work is not None:
                key, about = work.key(self.site), work.description(self.site)
                options = work.options(self.site, self.prices)
                self._copies[key] = Choice(key, about, f"to {order}", options)
        for step in steps:
            forms = self.forms.get(step.nodes[-1])
            if forms is not None and isinstance(step.realisation, ConvForm):
                choice = self._choice(forms.work, forms.offers, step.realisation)
                self._convolutions[step.nodes[-1]] = choice

    def copy_seconds(self, value: ir.Value) -> tuple[float, float]:
        """What it takes to store a tensor of four axes channels last, and channels first."""
        work = OrderCopyWork.of(value, self.site)
        if work is None:
            return 0.0, 0.0
        last, first = self.bench.seconds(work, work.candidates)
        return last, first

    def node_seconds(self, node: ir.Node) -> tuple[float, float]:
        """What a node takes channels last, and channels first."""
        last, first = self.bench.seconds(RunWork.of((node,)), (EagerRun(), EagerRun(FIRST)))
        return last, first

    # -- candidates ------------------------------------------------------------------------------

    def offers(self, work: Work) -> list[OfferedCandidate]:
        """What all providers have for some work."""
        return [
            OfferedCandidate(provider, candidate)
            for provider in self.providers
            if provider.refusal(work, self.site) is None
            for candidate in provider.build(work, self.site)
        ]

    def _group_kernel(self, group: LibraryGroup) -> Candidate | None:
        """The fastest product, or form that is channels last; all other forms are noted."""
        work = GroupWork.of(group)
        offers = self.offers(work)
        forms = [each.candidate for each in offers if isinstance(each.candidate, ConvForm)]
        if offers and not forms:
            return self._fastest(work, offers).candidate
        if not forms:
            return None
        self._know(work, offers)
        best = _fastest_forms(work.key(self.site), forms, self.prices)
        self.forms[group.nodes[-1]] = Forms(work, tuple(offers), best)
        return best[0]

    def _region_steps(self, region: RegionWork | ProgramStep) -> Sequence[ProgramStep]:
        if isinstance(region, ProgramStep):
            return [region]
        chosen = self._fastest(region, self.offers(region))
        if chosen.provider.keeps_steps:
            return region.steps
        return [ProgramStep(region.nodes, chosen.candidate)]

    def _run_kernel(self, work: RunWork) -> Candidate | None:
        """The kernel for some nodes, or None where they are as fast one by one."""
        offers = self.offers(work)
        rivals = [each for each in offers if not each.provider.keeps_steps]
        if not rivals:
            return None
        limits = {each.provider.name: each.provider.worth_from(self.site) for each in rivals}
        plain = next(each for each in offers if each.provider.keeps_steps)
        if any(limits.values()):
            (taken,) = self.bench.seconds(work, [plain.candidate])
            if taken == CANNOT_RUN:
                return None  # Nothing can be timed with the lengths that are assumed.
            offers = [each for each in offers if limits.get(each.provider.name, 0.0) <= taken]
        if len(offers) == 1:
            return None
        chosen = self._fastest(work, offers)
        return None if chosen.provider.keeps_steps else chosen.candidate

    def _fastest(self, work: Work, offers: Sequence[OfferedCandidate]) -> OfferedCandidate:
        if len(offers) > 1:
            self._know(work, offers)
        candidate = self.bench.fastest(work, [each.candidate for each in offers])
        self._choices.append(self._choice(work, offers, candidate))
        return next(each for each in offers if each.candidate is candidate)

    def _know(self, work: Work, offers: Sequence[OfferedCandidate]) -> None:
        """Time candidates; those that cannot run are reported."""
        if not self.bench.know(work, [each.candidate for each in offers]):
            return
        about = work.description(self.site)
        for option in self._options(work, offers):
            self.notices.of_option(option, about)

    def _choice(self, work: Work, offers: Sequence[OfferedCandidate], chosen: Candidate) -> Choice:
        key, about = work.key(self.site), work.description(self.site)
        return Choice(key, about, chosen.name, self._options(work, offers))

    def _options(
        self, work: Work, offers: Sequence[OfferedCandidate]
    ) -> tuple[PricedCandidate, ...]:
        return tuple(
            PricedCandidate(
                each.provider.name,
                each.candidate.name,
                each.provider.describe(each.candidate),
                each.provider.price(each.candidate, work, self.site, self.prices),
            )
            for each in offers
        )


def _fastest_forms(key: str, forms: Sequence[ConvForm], prices: Prices) -> tuple[ConvForm, ...]:
    """The fastest form of each pair of orders that can be run; the first pair's in any case."""
    by_orders: dict[tuple[Order, Order], dict[str, ConvForm]] = {}
    for form in forms:
        by_orders.setdefault((form.reads, form.writes), {})[form.name] = form
    best = [
        named[prices.best(key, tuple(named)) or next(iter(named))] for named in by_orders.values()
    ]
    known = prices.known.get(key, {})
    return (best[0], *(form for form in best[1:] if known[form.name].can_run))
