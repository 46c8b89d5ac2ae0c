"""What can make kernels: one interface for libraries, Inductor, Triton and our C++ kernels."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar, Protocol, runtime_checkable

import onnx_ir as ir

from relayout.backends.torch.program.program import ProgramStep
from relayout.backends.torch.program.scope import Scope
from relayout.backends.torch.providers.library_group import LibraryGroup
from relayout.backends.torch.providers.orders import Order
from relayout.backends.torch.providers.prices import Price, Prices
from relayout.backends.torch.providers.site import Site
from relayout.backends.torch.providers.work import RegionWork, Work


class Candidate(Protocol):
    """A realisation with a name under which its price is kept."""

    @property
    def name(self) -> str: ...

    def write(self, nodes: tuple[ir.Node, ...], scope: Scope) -> None: ...


@runtime_checkable
class Ordered(Protocol):
    """What reads tensors of four axes in a certain order."""

    @property
    def reads(self) -> Order: ...


class Provider(ABC):
    """Can it run some work here, build it, price it, describe it."""

    name: ClassVar[str]
    """By which it is switched on, and shown."""

    keeps_steps: ClassVar[bool] = False
    """Whether its candidates are nodes or steps as they are."""

    is_own: ClassVar[bool] = False
    """Whether its kernels are relayout's own, which may round more than those of libraries."""

    @abstractmethod
    def refusal(self, work: Work, site: Site) -> str | None:
        """Why it has no kernel for some work here; None where it has one."""

    @abstractmethod
    def build(self, work: Work, site: Site) -> Sequence[Candidate]:
        """Its kernels for work that it does not refuse, the one to prefer first."""

    def price(self, candidate: Candidate, work: Work, site: Site, prices: Prices) -> Price | None:
        """What a candidate takes, as measured on the device together with all others."""
        return prices.known.get(work.key(site), {}).get(candidate.name)

    @abstractmethod
    def describe(self, candidate: Candidate) -> str:
        """What a candidate is, in words that a stranger can read."""

    # -- what most providers leave as it is ------------------------------------------------------

    def fault(self, _site: Site) -> str | None:
        """Why it cannot be used here though it is meant for this device: users get to know it."""
        return None

    def worth_from(self, _site: Site) -> float:
        """The seconds that nodes must take one by one for its kernels to be worth building."""
        return 0.0

    def regions(
        self,
        steps: Sequence[ProgramStep],
        _groups: Mapping[ir.Node, LibraryGroup],
        _site: Site,
        _prices: Prices,
    ) -> Sequence[RegionWork | ProgramStep]:
        """The steps, with those it can do at once as one work; `groups` are by their last nodes."""
        return steps
