"""Colours of values: backwards from what is known, defaults for what is given, then forwards.

Every value is coloured once, in time linear in the operators and the values they touch. A palette
knows the colours that operators fix, so the same three passes colour the tensors of a model and the
orders of a layout problem.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Generic, Protocol, TypeVar

Op = TypeVar("Op")
Op_contra = TypeVar("Op_contra", contravariant=True)
Val = TypeVar("Val", bound=Hashable)
Col = TypeVar("Col", bound=Hashable)


class Origin(Enum):
    """In which pass a value got its colour."""

    BACKWARDS = "backwards"
    DEFAULT = "default"
    FORWARDS = "forwards"


class Palette(Protocol[Op_contra, Val, Col]):
    """What is known from operators about the colours of their operands and results."""

    def results(self, operator: Op_contra, /) -> Sequence[Val]: ...

    def known(self, operator: Op_contra, /) -> Sequence[tuple[Val, Col]]:
        """The colours that an operator fixes by itself; none if it takes any."""

    def before(self, operator: Op_contra, colours: dict[Val, Col], /) -> Iterable[tuple[Val, Col]]:
        """The colours of its operands that follow from those of its results."""

    def elect(self, votes: Sequence[Col], /) -> Col:
        """One colour for a value whose consumers vote for these, in their order."""


def majority(votes: Sequence[Col]) -> Col:
    """The colour that is named most often; of several the one named first."""
    counts = dict.fromkeys(votes, 0)
    for vote in votes:
        counts[vote] += 1
    return max(counts, key=counts.__getitem__)


def coloured_backwards(operators: Sequence[Op], palette: Palette[Op, Val, Col]) -> dict[Val, Col]:
    """The colours of values before the operators that fix them.

    A value is decided when its producer is reached: by then all its consumers have voted.
    """
    colours: dict[Val, Col] = {}
    votes: dict[Val, list[Col]] = {}
    for operator in reversed(operators):
        known = palette.known(operator)
        own = dict(reversed(known))
        results = dict.fromkeys(palette.results(operator))
        for value in results:
            cast = votes.pop(value, None)
            if value in own:
                colours[value] = own[value]
            elif cast is not None:
                colours[value] = palette.elect(cast[::-1])
        for value, colour in known or palette.before(operator, colours):
            if value not in results:
                votes.setdefault(value, []).append(colour)
    for value, cast in votes.items():
        colours[value] = palette.elect(cast[::-1])
    return colours


class FullPalette(Palette[Op_contra, Val, Col], Protocol[Op_contra, Val, Col]):
    """What is needed to colour everything."""

    def default(self, value: Val, /) -> Col:
        """The colour of a value that nothing is known about and no operator makes."""

    def after(self, operator: Op_contra, colours: dict[Val, Col], /) -> Iterable[tuple[Val, Col]]:
        """The colours of all results, those of all operands being known."""

    def wanted(self, operator: Op_contra, colours: dict[Val, Col], /) -> Iterable[tuple[Val, Col]]:
        """The colours in which an operator wants its operands."""


@dataclass(frozen=True, slots=True)
class Transmission(Generic[Val, Col]):
    colours: dict[Val, Col]
    origins: dict[Val, Origin]
    conversions: dict[tuple[Val, Col], int]
    """By value and another colour that is wanted of it, how many operators want it."""


def transmit(
    operators: Sequence[Op], sources: Iterable[Val], palette: FullPalette[Op, Val, Col]
) -> Transmission[Val, Col]:
    """Colour every operand and result of the operators, which are in topological order."""
    colours = coloured_backwards(operators, palette)
    origins = dict.fromkeys(colours, Origin.BACKWARDS)
    for value in sources:
        if value not in colours:
            colours[value], origins[value] = palette.default(value), Origin.DEFAULT
    conversions: dict[tuple[Val, Col], int] = {}
    for operator in operators:
        for value, colour in palette.after(operator, colours):
            if value not in colours:
                colours[value], origins[value] = colour, Origin.FORWARDS
        wanted = dict.fromkeys(palette.wanted(operator, colours))
        for value, colour in wanted:
            if colours[value] != colour:
                conversions[value, colour] = conversions.get((value, colour), 0) + 1
    return Transmission(colours, origins, conversions)
