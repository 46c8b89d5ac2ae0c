"""One walk from sources to outputs, in which an operator sees only its own operands."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from relayout.assign.assignment import Assignment
from relayout.assign.problem import LayoutProblem, Operator, Variant
from relayout.assign.strategies.demands import assigned, cheapest, demanded, walk_order


class AtHand:
    """The orders in which values exist so far: as stored, and as copied for earlier readers."""

    def __init__(self, problem: LayoutProblem) -> None:
        self.problem = problem
        self.stored: list[int | None] = [None] * len(problem.values)
        self.copied: list[set[int]] = [set() for _ in problem.values]

    def missing(self, operator: Operator, variant: Variant) -> list[tuple[int, int, int]]:
        """The copies a variant would add, as (value, stored order, wanted order)."""
        wanted = dict.fromkeys(zip(operator.operands, variant.reads, strict=True))
        found = []
        for value, order in wanted:
            stored = self.stored[value]
            if stored is not None and stored != order and order not in self.copied[value]:
                found.append((value, stored, order))
        return found

    def moved(self, operator: Operator) -> dict[int, int]:
        """The operands stored in another order than the operator as given reads, with that order.

        In the model a Transpose stands before each of them.
        """
        given = zip(operator.operands, operator.variants[0].reads, strict=True)
        stored = ((value, self.stored[value], order) for value, order in given)
        return {value: found for value, found, order in stored if found not in {None, order}}

    def run(self, operator: Operator, variant: Variant) -> None:
        for value, order in zip(operator.operands, variant.reads, strict=True):
            self.copied[value].add(order)
        for value, order in zip(operator.results, variant.writes, strict=True):
            self.stored[value] = order


Misfit: TypeAlias = tuple[int, ...]
"""How little a variant of an agnostic operator fits what is at hand, first what counts most."""
WeighVariant: TypeAlias = Callable[[AtHand, Operator, Variant], Misfit]


def walk(problem: LayoutProblem, weigh: WeighVariant) -> Assignment:
    """Demanding operators as they demand, agnostic ones as fits best, the given way first."""
    at_hand = AtHand(problem)
    choice = [0] * len(problem.operators)
    for index in walk_order(problem):
        operator = problem.operators[index]
        variant = demanded(operator)
        if variant is None:
            weights = {
                i: weigh(at_hand, operator, operator.variants[i]) for i in cheapest(operator)
            }
            variant = min(weights, key=weights.__getitem__)
        choice[index] = variant
        at_hand.run(operator, operator.variants[variant])
    return assigned(problem, choice)
