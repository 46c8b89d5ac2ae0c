"""What is assumed at a Reshape, from whose result nothing follows about its operand.

The nearest known operator decides: one before it, one after it, or the nearer of both. Products of
matrices take any number of batch axes, so they speak for NTensor where a tensor can be one;
convolutions speak for Tensor, or for their own layout where they read what a Reshape made.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TypeVar

import onnx_ir as ir

from relayout.errors import RelayoutError
from relayout.graph.read import constant_of, rank_of
from relayout.infer.coloured_node import ColouredNode
from relayout.infer.nearest import Found, nearest_known
from relayout.layout.layout import Colour, LayoutClass
from relayout.ops.known_layouts import plain

Choice = TypeVar("Choice", bound=Enum)


class Look(Enum):
    """Where the layout of a Reshape's result is inferred from if no consumer fixes it.

    The same holds for all operators whose results have axes of their own.
    """

    BEFORE = "before"
    AFTER = "after"
    NEAREST = "nearest"

    @property
    def summary(self) -> str:
        """What it goes by."""
        return _SUMMARIES[self]


_SUMMARIES = {
    Look.BEFORE: "the nearest known operator before it",
    Look.AFTER: "the nearest known operator after it",
    Look.NEAREST: "the known operator that is nearer",
}


class Direction(Enum):
    """In which pass it is inferred."""

    FORWARDS = "forwards"
    BACKWARDS = "backwards"

    @property
    def summary(self) -> str:
        """What is inferred in it."""
        return _WALKS[self]


_WALKS = {
    Direction.FORWARDS: "the result of a Reshape, after all that consumers fix",
    Direction.BACKWARDS: "the operand of a Reshape, as one more consumer of it",
}


def look_of(name: str) -> Look:
    """The look of a name."""
    return _named(Look, "look", name)


def walk_of(name: str) -> Direction:
    """The direction of a name."""
    return _named(Direction, "walk", name)


def _named(kind: type[Choice], word: str, name: str) -> Choice:
    try:
        return kind(name)
    except ValueError:
        known = ", ".join(str(each.value) for each in kind)
        raise RelayoutError(f"{word} is one of {known}, not {name!r}") from None


@dataclass(frozen=True, slots=True)
class Sight:
    """The known operator that a Reshape is inferred from."""

    known: ColouredNode
    is_after: bool

    def colour(self, value: ir.Value) -> Colour:
        """What a value with axes of its own is to this operator.

        A Reshape makes features only where something reads them, so one before it never speaks for
        its own layout.
        """
        layout = self.known.layout
        if layout is None:
            return plain(value)
        if self.is_after and rank_of(value) == layout.rank:
            return Colour.named(layout)
        return Colour(LayoutClass.TENSOR)


def assumed(
    operators: Sequence[ColouredNode], look: Look, walk: Direction
) -> dict[ir.Value, Colour]:
    """The colours of what Reshapes write, or, walking backwards, of what they read."""
    found: dict[ir.Value, Colour] = {}
    for operator, sight in zip(operators, _sights(operators, look), strict=True):
        if sight is None or not operator.relabels:
            continue
        inferred = operator.view.node.outputs if walk is Direction.FORWARDS else operator.operands
        given = (value for value in inferred if constant_of(value) is None)
        found.update((value, sight.colour(value)) for value in given if value not in found)
    return found


def _sights(operators: Sequence[ColouredNode], look: Look) -> list[Sight | None]:
    """For each operator the known one that its look leads to."""
    known, everyone = [bool(operator.known) for operator in operators], range(len(operators))
    before, after = _neighbours(operators)
    earlier: list[Found | None] = [None] * len(operators)
    later = list(earlier)
    if look is not Look.AFTER:
        earlier = nearest_known(everyone, before, known)
    if look is not Look.BEFORE:
        later = nearest_known(reversed(everyone), after, known)
    sights: list[Sight | None] = []
    for one, other in zip(earlier, later, strict=True):
        is_after = look is Look.AFTER or (look is Look.NEAREST and _is_nearer(other, one))
        near = other if is_after else one
        sights.append(None if near is None else Sight(operators[near[1]], is_after))
    return sights


def _neighbours(operators: Sequence[ColouredNode]) -> tuple[list[list[int]], list[list[int]]]:
    """The operators that make what each operator reads, and those that read what it makes."""
    makers = {v: index for index, o in enumerate(operators) for v in o.view.node.outputs}
    before = [[makers[value] for value in o.operands if value in makers] for o in operators]
    after: list[list[int]] = [[] for _ in operators]
    for reader, producers in enumerate(before):
        for producer in producers:
            after[producer].append(reader)
    return before, after


def _is_nearer(one: Found | None, other: Found | None) -> bool:
    return one is not None and (other is None or one[0] < other[0])
