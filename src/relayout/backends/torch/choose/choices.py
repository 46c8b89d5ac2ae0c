"""What was chosen for each work, from which candidates."""

from __future__ import annotations

from dataclasses import dataclass

from relayout.backends.torch.providers.prices import Price
from relayout.backends.torch.providers.provider import Candidate, Provider
from relayout.backends.torch.providers.work import WorkDescription


@dataclass(frozen=True, slots=True)
class OfferedCandidate:
    """A candidate, and the provider that has made it."""

    provider: Provider
    candidate: Candidate


@dataclass(frozen=True, slots=True)
class PricedCandidate:
    """The name of a candidate, and the time it takes if that was measured."""

    provider: str
    name: str
    words: str
    price: Price | None = None


@dataclass(frozen=True, slots=True)
class Choice:
    """How one work is done, and what was measured of it."""

    group: str
    """The key under which its prices are kept."""
    about: WorkDescription
    chosen: str
    options: tuple[PricedCandidate, ...]

    @property
    def option(self) -> PricedCandidate:
        """The candidate that was chosen."""
        return next(option for option in self.options if option.name == self.chosen)

    @property
    def seconds(self) -> dict[str, float]:
        """What was measured, by candidate."""
        priced = [(option.name, option.price) for option in self.options]
        return {name: price.seconds for name, price in priced if price is not None}
