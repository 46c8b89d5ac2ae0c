"""What was measured on a device, kept in a file so that a choice is made once."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from relayout.backends.kept import cache_folder, read_json, write_json
from relayout.backends.locking import locked

ALIKE = 1.05
"""Times that differ by less are alike: the next measurement may order them differently."""

CANNOT_RUN = math.inf
"""The seconds of a candidate that cannot run here."""

MOST_SPREAD = 1 / 3
"""The largest spread, as a part of the median, with which a time is kept."""


@dataclass(frozen=True, slots=True)
class Price:
    """What a candidate takes on the device, or why it cannot run there."""

    seconds: float
    """The least time: whatever else the machine does only adds to it."""
    spread: float = 0.0
    """The interquartile range of all runs as a part of their median: one interrupted run, which
    the range from least to most would show, does not make the others uncertain."""
    reason: str = ""
    """Why it cannot run."""

    @classmethod
    def of_runs(cls, seconds: Sequence[float]) -> Price:
        if len(seconds) < 2:
            return cls(min(seconds))
        low, middle, high = statistics.quantiles(seconds, n=4, method="inclusive")
        return cls(min(seconds), (high - low) / middle if middle > 0 else 0.0)

    @classmethod
    def refused(cls, reason: str) -> Price:
        """The price of what cannot run."""
        return cls(CANNOT_RUN, reason=reason)

    @property
    def can_run(self) -> bool:
        return self.seconds < CANNOT_RUN

    @property
    def is_noisy(self) -> bool:
        """Whether the machine was too busy for the time to be kept."""
        return self.spread > MOST_SPREAD

    def to_json(self) -> dict[str, Any]:
        if not self.can_run:
            return {"cannot_run": self.reason}
        return {"seconds": self.seconds, "spread": self.spread}


def price_of(record: Any) -> Price | None:
    """A price as it was kept; None for what is not a price."""
    if not isinstance(record, dict):
        return None
    reason, seconds, spread = (record.get(key) for key in ("cannot_run", "seconds", "spread"))
    if isinstance(reason, str) and reason:
        return Price.refused(reason)
    if not isinstance(seconds, float) or not isinstance(spread, float):
        return None
    return Price(seconds, spread) if 0 <= seconds < CANNOT_RUN else None


PriceTable: TypeAlias = dict[str, dict[str, Price]]
"""Prices by group and candidate."""


@dataclass(slots=True)
class Prices:
    """Prices by group and candidate, on one device with one version of torch."""

    device: str
    known: PriceTable = field(default_factory=dict)
    path: Path | None = None
    _learned: set[tuple[str, str]] = field(default_factory=set)

    @classmethod
    def of(cls, device: str, *, again: bool = False) -> Prices:
        """What is known of a device, or nothing where all is to be measured again."""
        plain = "".join(c if c.isalnum() or c in "._-" else "_" for c in device)
        path = cache_folder() / f"torch-{plain}.json"
        return cls(device, {} if again else read_prices(path), path)

    def best(self, group: str, names: tuple[str, ...]) -> str | None:
        """The first candidate that is about as fast as any, if all of them have been measured."""
        known = self.seconds(group)
        if not names or any(name not in known for name in names):
            return None
        least = min(known[name] for name in names)
        return next(name for name in names if known[name] <= ALIKE * least)

    def seconds(self, group: str) -> dict[str, float]:
        """What the candidates of a group take."""
        return {name: price.seconds for name, price in self.known.get(group, {}).items()}

    def lacks(self, group: str, names: Iterable[str]) -> bool:
        """Whether one of some candidates was never measured."""
        known = self.known.get(group, {})
        return any(name not in known for name in names)

    def learn(self, group: str, name: str, price: Price) -> None:
        self.known.setdefault(group, {})[name] = price
        self._learned.add((group, name))

    @property
    def noisy(self) -> list[tuple[str, str]]:
        """What was learned here, by group and candidate, and will not be kept."""
        return sorted(
            (group, name) for group, name in self._learned if self.known[group][name].is_noisy
        )

    def save(self) -> None:
        """Add what was learned here to what the file holds by now; noise is not kept.

        The file is written whole or stays as it was.
        """
        kept = [(group, name) for group, name in self._learned if self._is_kept(group, name)]
        if self.path is None or not kept:
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with locked(self.path.with_suffix(".lock")):
            merged = read_prices(self.path)
            for group, name in kept:
                merged.setdefault(group, {})[name] = self.known[group][name]
            _write(self.path, merged)

    def _is_kept(self, group: str, name: str) -> bool:
        price = self.known[group][name]
        return not price.is_noisy and (price.can_run or bool(price.reason))


def read_prices(path: Path) -> PriceTable:
    """What a file holds; one that cannot be read counts as none, and so does an odd entry."""
    records = read_json(path)
    if not isinstance(records, dict):
        return {}
    found: PriceTable = {}
    for group, by_name in records.items():
        if not isinstance(by_name, dict):
            continue
        prices = {name: price_of(record) for name, record in by_name.items()}
        found[group] = {name: price for name, price in prices.items() if price is not None}
    return found


def _write(path: Path, known: PriceTable) -> None:
    records = {
        group: {name: price.to_json() for name, price in by_name.items()}
        for group, by_name in known.items()
    }
    write_json(path, records)
