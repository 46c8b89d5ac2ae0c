"""Why a Transpose is there, as plain data."""

from __future__ import annotations

from dataclasses import dataclass

AVOIDABLE = "not needed here: relayout optimize removes or moves it"
EINSUM_WOULD = "--einsum would state it as an Einsum, in any order"
INVALID = "its perm does not fit the rank, or the rank is unknown"
NEEDED = "needed by the variants offered: these demands conflict in every choice among them"
NO_CONFLICT = "no conflicting demand was found near it"
NO_DATA = "moves no data: only axes of length 1 change places"
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
