"""Sums of products by an equation, which names the axes of every operand and of the result."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from relayout.layout.permutation import Permutation
from relayout.layout.transport import Changes, Refusal, Transport
from relayout.ops.rule import OpRule

if TYPE_CHECKING:
    from relayout.graph.read import NodeView

DOTS = "..."


@dataclass(frozen=True, slots=True)
class Equation:
    """The letters of every operand and of the result; dots stand for axes without a name."""

    terms: tuple[str, ...]
    result: str | None
    """None where it follows from the terms."""

    @classmethod
    def of(cls, text: str) -> Equation:
        left, arrow, right = text.replace(" ", "").partition("->")
        return cls(tuple(left.split(",")), right if arrow else None)

    def __str__(self) -> str:
        left = ",".join(self.terms)
        return left if self.result is None else f"{left}->{self.result}"

    @property
    def explicit_result(self) -> str:
        """The result, spelt out: the axes without a name, then what occurs once, sorted."""
        if self.result is not None:
            return self.result
        counts = Counter("".join(self.terms).replace(".", ""))
        letters = sorted(letter for letter, count in counts.items() if count == 1)
        return (DOTS if any(DOTS in term for term in self.terms) else "") + "".join(letters)

    def with_operand(self, index: int, order: Permutation) -> Equation | None:
        """The equation for an operand stored in `order`.

        An implicit result stays: it depends on how often a letter occurs, not on where.
        """
        moved = _moved(self.terms[index], order) if index < len(self.terms) else None
        if moved is None:
            return None
        return replace(self, terms=(*self.terms[:index], moved, *self.terms[index + 1 :]))

    def with_result(self, order: Permutation) -> Equation | None:
        """The equation that gives the result stored in `order`."""
        moved = _moved(self.explicit_result, order)
        return None if moved is None else replace(self, result=moved)


def _moved(term: str, order: Permutation) -> str | None:
    """A term whose letters follow their axes; the axes without a name must stay together."""
    head, dots, tail = term.partition(DOTS)
    unnamed = order.rank - len(head + tail)
    if unnamed < 0 or (unnamed > 0 and not dots):
        return None
    places = [*head, *range(unnamed), *tail]
    moved = list(order.reorder(places))
    run = [place for place in moved if isinstance(place, int)]
    start = moved.index(0) if run else len(head)
    if moved[start : start + unnamed] != sorted(run):
        return None
    letters = [str(place) for place in moved if not isinstance(place, int)]
    return "".join([*letters[:start], dots, *letters[start:]])


def equation_of(view: NodeView) -> Equation:
    return Equation.of(view.string("equation", ""))


def _by_operand(view: NodeView, operand: int, order: Permutation) -> Transport | Refusal:
    """The letters of a term follow its axes, and the result does not show it."""
    moved = equation_of(view).with_operand(operand, order)
    if moved is None:
        return Refusal("Einsum's dots name no axes, so those must stay in place")
    inputs = tuple(order if index == operand else None for index in range(view.arity))
    return Transport(inputs, (None,), Changes({"equation": str(moved)}))


def einsum(view: NodeView, order: Permutation) -> Transport | Refusal:
    return _by_operand(view, 0, order)


def any_operand(view: NodeView, operand: int, order: Permutation) -> Sequence[Transport]:
    answer = _by_operand(view, operand, order)
    return () if isinstance(answer, Refusal) else (answer,)


def result_as_given(view: NodeView, result: Permutation) -> Permutation | Refusal:
    """What reads the result in another order is told by the equation when the node is rewritten."""
    lead = view.rank(0)
    if lead is None or not result.is_identity:
        return Refusal("Einsum gives its result in the order of its equation")
    return Permutation.identity(lead)


RULES = (OpRule(("Einsum",), einsum, result_as_given, joint=any_operand),)
