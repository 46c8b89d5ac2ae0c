"""Why a Transpose is there, as plain data."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

AVOIDABLE = "not needed here: relayout optimize removes or moves it"
EINSUM_WOULD = "--einsum would state it as an Einsum, in any order"
INVALID = "its perm does not fit the rank, or the rank is unknown"
NEEDED = "needed by the variants offered: these demands conflict in every choice among them"
NO_CONFLICT = "no conflicting demand was found near it"
NO_DATA = "only axes of length 1 change places: the order in memory stays the same"
PASSES_ON = "only other Transposes read it"
UNDOES = "gives back the order the tensor is stored in"


@dataclass(frozen=True, slots=True)
class Demand:
    """What insists on an order."""

    name: str
    op_type: str
    """Empty for the inputs and outputs of a graph."""
    reason: str
    line: str | None = None
    """The source line it was exported from."""


@dataclass(frozen=True, slots=True)
class Demands:
    """The nearest demands of one side, and how many more were met."""

    named: tuple[Demand, ...] = ()
    more: int = 0


@dataclass(frozen=True, slots=True)
class Explanation:
    """Which demands conflict at a Transpose, or why it is not needed."""

    stored_for: Demands = Demands()
    wanted_by: Demands = Demands()
    note: str = ""

    def __str__(self) -> str:
        """As reports have it, in one line."""
        conflict = (f"{label} {text}" for label, text in sides(self))
        return "; ".join(filter(None, (self.note, *conflict)))


def sides(
    why: Explanation, name_of: Callable[[Demand], str] = lambda demand: demand.name
) -> Iterator[tuple[str, str]]:
    """What conflicts: a label and a text for all operators that demand an order alike."""
    for label, demands in (("stored for", why.stored_for), ("wanted by", why.wanted_by)):
        by_reason: dict[tuple[str, str], list[Demand]] = {}
        for demand in demands.named:
            by_reason.setdefault((demand.op_type, demand.reason), []).append(demand)
        for (op_type, reason), same in by_reason.items():
            names = ", ".join(map(name_of, same))
            who = names if reason.startswith(op_type) else f"{op_type} {names}"
            yield label, f"{who}: {reason}" if op_type else reason
        if demands.more:
            yield label, f"{demands.more} more"


def causes(why: Explanation) -> Iterator[tuple[str, str]]:
    """What conflicts, without the names of those that demand it: a label and each reason once."""
    for label, demands in (("stored for", why.stored_for), ("wanted by", why.wanted_by)):
        for op_type, reason in dict.fromkeys((each.op_type, each.reason) for each in demands.named):
            who = "" if reason.startswith(op_type) else f"{op_type} "
            yield f"{label}:", f"{who}{reason}"
