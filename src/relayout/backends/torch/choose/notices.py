"""Notices about kernels that fail, one for each cause."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field

from relayout.backends.torch.choose.choices import PricedCandidate
from relayout.backends.torch.providers.prices import Prices
from relayout.backends.torch.providers.provider import Provider
from relayout.backends.torch.providers.site import Site
from relayout.backends.torch.providers.work import WorkDescription

NOISE = (
    "the machine is busy: times that spread by more than a third of their median are used now, "
    "and taken again the next time"
)


class KernelWarning(UserWarning):
    """A kernel, a compiler or a provider fails; something else does its work."""


@dataclass(slots=True)
class Notices:
    """Texts by provider and reason."""

    texts: dict[tuple[str, str], str] = field(default_factory=dict)

    def of_fault(self, provider: Provider, site: Site) -> str | None:
        """Why a provider cannot be used on a device that it is meant for."""
        fault = provider.fault(site)
        if fault is not None:
            self.texts[provider.name, fault] = f"no kernels of {provider.name}: {fault}"
        return fault

    def of_option(self, option: PricedCandidate, about: WorkDescription) -> None:
        """A candidate that cannot run is a notice, others of the same cause are not."""
        price = option.price
        if price is None or price.can_run:
            return
        kernel, work = (
            f"{option.provider} ({option.words})",
            f"{about.operator} {list(about.source)}",
        )
        text = f"{kernel} cannot run {work}: {price.reason}"
        self.texts.setdefault((option.provider, price.reason), text)

    def of_noise(self, prices: Prices) -> None:
        """Whether times are too uncertain to be kept."""
        if prices.noisy:
            self.texts["", "noise"] = NOISE

    def warn(self) -> None:
        for text in self.texts.values():
            warnings.warn(text, KernelWarning, stacklevel=3)
