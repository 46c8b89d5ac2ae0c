"""Which operators insist on orders, and which run in several for the same price."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from relayout.assign.assignment import Assignment, RegionChoice
from relayout.assign.problem import LayoutProblem, Operator, Variant, evaluate


def cheapest(operator: Operator) -> tuple[int, ...]:
    """The variants of the least price, the given one first if it is among them."""
    least = min(variant.price for variant in operator.variants)
    return tuple(i for i, variant in enumerate(operator.variants) if variant.price == least)


def demanded(operator: Operator) -> int | None:
    """The variant an operator insists on; None if it is agnostic."""
    candidates = cheapest(operator)
    orders = {(operator.variants[i].reads, operator.variants[i].writes) for i in candidates}
    return candidates[0] if len(orders) == 1 else None


def ports(operator: Operator, variant: Variant) -> Iterator[tuple[int, int]]:
    """Every value an operator touches, with its order in a variant."""
    yield from zip(operator.operands, variant.reads, strict=True)
    yield from zip(operator.results, variant.writes, strict=True)


def walk_order(problem: LayoutProblem) -> list[int]:
    """The operators as they stand, those that read nothing first."""
    everyone = range(len(problem.operators))
    sources = [index for index in everyone if not problem.operators[index].operands]
    return sources + [index for index in everyone if problem.operators[index].operands]


def assigned(
    problem: LayoutProblem, choice: Sequence[int], regions: tuple[RegionChoice, ...] = ()
) -> Assignment:
    """A choice with its cost, about which nothing is proved."""
    cost = evaluate(problem, choice)
    if cost is None:
        raise ValueError("the choice names variants that the problem does not have")
    return Assignment(tuple(choice), cost, regions=regions)
