"""What a proof shows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

MOST_KINDS = 3
"""So many kinds of steps are listed one by one where a proof is told in a line."""


@dataclass(frozen=True)
class Ledger:
    """The steps of a proof that change rounding, by name and number."""

    steps: Mapping[str, int] = field(default_factory=dict)
    error: float = 0.0
    """The largest difference of constants, relative to the largest number in each."""

    def __bool__(self) -> bool:
        return bool(self.steps)

    def __str__(self) -> str:
        """All steps if they are of few kinds, else the most frequent kinds."""
        named = [f"{count} {name}" for name, count in self.steps.items()]
        text = ", ".join(named)
        if len(named) > MOST_KINDS:
            first = sorted(self.steps, key=lambda name: -self.steps[name])[: MOST_KINDS - 1]
            listed = ", ".join(f"{self.steps[name]} {name}" for name in first)
            text = (
                f"{sum(self.steps.values())} steps that only change rounding ({listed}, "
                f"{len(named) - len(first)} other kinds)"
            )
        return text + f" (constants differ by {self.error:.1e} at most)" * bool(self.error)


@dataclass(frozen=True)
class OutputProof:
    name: str
    proved: bool


@dataclass(frozen=True)
class ModelProof:
    """By output, whether both models give the same for every input and all lengths from 1 on.

    `conditions` are what had to be taken for granted, `not_known` why parts could not be followed,
    `not_followed` the nodes of either model that are or hold such parts.
    """

    outputs: tuple[OutputProof, ...]
    not_known: tuple[str, ...] = ()
    not_followed: tuple[str, ...] = ()
    conditions: tuple[str, ...] = ()
    ledger: Ledger = field(default_factory=Ledger)

    @property
    def proved(self) -> int:
        return sum(output.proved for output in self.outputs)

    @property
    def holds(self) -> bool:
        return bool(self.outputs) and self.proved == len(self.outputs)

    @property
    def identical(self) -> bool:
        """Whether all outputs are proved without a step that changes rounding."""
        return self.holds and not self.ledger

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> ModelProof:
        outputs = tuple(OutputProof(**output) for output in data["outputs"])
        ledger = Ledger(**data["ledger"])
        lists = {name: tuple(data[name]) for name in ("not_known", "not_followed", "conditions")}
        return cls(outputs, ledger=ledger, **lists)

    def summary(self) -> str:
        """One line for people."""
        if not self.holds:
            left = [output.name for output in self.outputs if not output.proved]
            why = f": {self.not_known[0]}" if self.not_known else ""
            return f"not proved for {len(left)} of {len(self.outputs)} outputs{why}"
        how = f"proved up to {self.ledger}" if self.ledger else "proved identical"
        return how + f", where {' and '.join(self.conditions)}" * bool(self.conditions)
