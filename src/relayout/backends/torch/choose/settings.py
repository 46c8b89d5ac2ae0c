"""What callers may set for the choice of kernels."""

from __future__ import annotations

from dataclasses import dataclass

from relayout.backends.torch.choose.bench import CandidateTimer, time_candidates
from relayout.backends.torch.choose.device_name import device_name
from relayout.backends.torch.providers.prices import Prices
from relayout.backends.torch.providers.provider import Provider
from relayout.backends.torch.providers.registry import enabled_providers


@dataclass(frozen=True, slots=True)
class TuningSettings:
    """Which providers may make kernels, how these are timed, and which times are known."""

    providers: tuple[Provider, ...] | None = None
    """Those that the environment names, unless they are given."""
    timer: CandidateTimer = time_candidates
    prices: Prices | None = None
    """Those kept for the device, unless they are given."""
    again: bool = False
    """Whether kept times are measured again."""

    def providers_here(self) -> tuple[Provider, ...]:
        return enabled_providers() if self.providers is None else self.providers

    def prices_of(self, device: str) -> Prices:
        if self.prices is not None:
            return self.prices
        return Prices.of(device_name(device), again=self.again)
