"""Regions of operators connected by values, by union-find."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from relayout.assign.problem import LayoutProblem, Operator
from relayout.assign.strategies.demands import ports

OperatorRun: TypeAlias = tuple[int, ...]
"""Operators, in the order in which they stand."""
Ways: TypeAlias = Mapping[int, Sequence[int]]
"""The members of a region, with the variants that each may take."""


class UnionFind:
    """Sets of numbers that grow together; the smaller joins the larger."""

    def __init__(self, count: int) -> None:
        self.parent = list(range(count))
        self.size = [1] * count

    def find(self, item: int) -> int:
        while self.parent[item] != item:
            self.parent[item] = self.parent[self.parent[item]]
            item = self.parent[item]
        return item

    def join(self, one: int, other: int) -> None:
        large, small = self.find(one), self.find(other)
        if large == small:
            return
        if self.size[large] < self.size[small]:
            large, small = small, large
        self.parent[small] = large
        self.size[large] += self.size[small]


def regions(problem: LayoutProblem, kinds: Sequence[int | None]) -> list[OperatorRun]:
    """The operators of each kind that values connect; those without a kind are in no region."""
    sets = UnionFind(len(problem.operators))
    for producer, readers in zip(problem.producers, problem.readers, strict=True):
        first_of_kind: dict[int, int] = {}
        for operator in (producer, *readers):
            kind = kinds[operator]
            if kind is not None:
                sets.join(first_of_kind.setdefault(kind, operator), operator)
    grouped: dict[int, list[int]] = {}
    for operator, kind in enumerate(kinds):
        if kind is not None:
            grouped.setdefault(sets.find(operator), []).append(operator)
    return [tuple(members) for members in grouped.values()]


def connected_runs(
    problem: LayoutProblem, choice: Sequence[int], kinds: Sequence[bool] | None = None
) -> list[OperatorRun]:
    """The parts that a graph falls into at its copies and between kinds; its ends are in none."""
    sets, stored = UnionFind(len(problem.operators)), stored_orders(problem, choice)
    inner = [index for index, o in enumerate(problem.operators) if o.operands and o.results]
    are_inner = set(inner)
    for index in inner:
        operator = problem.operators[index]
        reads = zip(operator.operands, operator.variants[choice[index]].reads, strict=True)
        for value, order in reads:
            producer = problem.producers[value]
            is_one_kind = kinds is None or kinds[producer] == kinds[index]
            if stored[value] == order and producer in are_inner and is_one_kind:
                sets.join(producer, index)
    grouped: dict[int, list[int]] = {}
    for index in inner:
        grouped.setdefault(sets.find(index), []).append(index)
    return [tuple(members) for members in grouped.values()]


def stored_orders(problem: LayoutProblem, choice: Sequence[int]) -> dict[int, int]:
    """The order in which each value is stored."""
    stored: dict[int, int] = {}
    for operator, chosen in zip(problem.operators, choice, strict=True):
        stored.update(zip(operator.results, operator.variants[chosen].writes, strict=True))
    return stored


def spread(problem: LayoutProblem, ways: Ways, anchor: int, variant: int) -> dict[int, int]:
    """One variant per member of a region, each agreeing with those before it as far as it can."""
    chosen, orders = {anchor: variant}, dict[int, int]()
    waiting = deque([anchor])
    while waiting:
        index = waiting.popleft()
        operator = problem.operators[index]
        fresh = [p for p in ports(operator, operator.variants[chosen[index]]) if p[0] not in orders]
        orders.update(fresh)
        for value in dict.fromkeys(value for value, _ in fresh):
            for other in (problem.producers[value], *problem.readers[value]):
                if other in ways and other not in chosen:
                    chosen[other] = _fitting(problem.operators[other], ways[other], orders)
                    waiting.append(other)
    return chosen


def _fitting(operator: Operator, candidates: Sequence[int], orders: Mapping[int, int]) -> int:
    """The candidate that agrees with most orders; among those the cheapest, the first."""

    def misfit(index: int) -> tuple[int, int]:
        variant = operator.variants[index]
        fits = sum(orders.get(value) == order for value, order in ports(operator, variant))
        return -fits, variant.price

    return min(candidates, key=misfit)
