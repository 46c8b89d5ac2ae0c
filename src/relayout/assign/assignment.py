"""What a strategy answers: one variant per operator, its cost, and how good that is."""

from __future__ import annotations

from dataclasses import dataclass

from relayout.assign.component import Decided


@dataclass(frozen=True, slots=True)
class RegionChoice:
    """Operators that a strategy decided about together."""

    members: tuple[int, ...]
    is_flipped: bool
    """Whether some of them run in other orders than given."""
    why: str


@dataclass(frozen=True, slots=True)
class Assignment:
    """A choice of variants with its exact cost and a lower bound on the cost of any choice."""

    choice: tuple[int, ...]
    cost: int
    bound: int = 0
    parts: tuple[Decided, ...] = ()
    """The components with their proofs; empty where a strategy proves nothing."""
    notes: tuple[str, ...] = ()
    regions: tuple[RegionChoice, ...] = ()
    """What was decided about each region; empty where a strategy does not go by regions."""

    @property
    def optimal(self) -> bool:
        """Whether the bound proves that no choice among the variants offered costs less."""
        return self.cost == self.bound

    def __str__(self) -> str:
        verdict = "least for the variants offered" if self.optimal else f"at least {self.bound}"
        return "; ".join([f"cost {self.cost} ({verdict})", *self.notes])
