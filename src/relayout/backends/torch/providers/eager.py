"""The operators of torch one after the other: what every other kernel is compared with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import onnx_ir as ir

from relayout.backends.torch.program.program import EAGER
from relayout.backends.torch.program.scope import Scope
from relayout.backends.torch.providers.native_region import StepsRegion
from relayout.backends.torch.providers.orders import LAST, Order
from relayout.backends.torch.providers.provider import Candidate, Provider
from relayout.backends.torch.providers.site import Site
from relayout.backends.torch.providers.work import RegionWork, RunWork, Work


@dataclass(frozen=True, slots=True)
class EagerRun:
    """Nodes one by one, on tensors stored in an order."""

    reads: Order = LAST

    @property
    def name(self) -> str:
        return "eager" if self.reads == LAST else f"eager {self.reads}"

    def write(self, nodes: tuple[ir.Node, ...], scope: Scope) -> None:
        EAGER.write(nodes, scope)


class EagerProvider(Provider):
    """Always there: nodes, or the steps of a region, stay as they are."""

    name = "torch"
    keeps_steps = True

    def refusal(self, work: Work, _site: Site) -> str | None:
        if isinstance(work, RunWork | RegionWork):
            return None
        return "the kernels of libraries do the same"

    def build(self, work: Work, _site: Site) -> Sequence[Candidate]:
        return [StepsRegion(work.steps) if isinstance(work, RegionWork) else EagerRun()]

    def describe(self, candidate: Candidate) -> str:
        return "steps as they are" if isinstance(candidate, StepsRegion) else "one node at a time"
