"""The naive strategy: every demanding operator is isolated by copies of its own."""

from __future__ import annotations

from collections.abc import Sequence

from relayout.assign.assignment import Assignment
from relayout.assign.problem import LayoutProblem
from relayout.assign.strategies.demands import assigned, demanded, ports


def solve_naive(problem: LayoutProblem) -> Assignment:
    """Demanding operators as they demand, all others as given."""
    return assigned(problem, [demanded(operator) or 0 for operator in problem.operators])


def isolating_copies(problem: LayoutProblem, choice: Sequence[int]) -> int:
    """How many copies stand around the operators before neighbouring ones cancel.

    Each operator has its own, from the orders it is given in to those it runs in and back.
    """
    count = 0
    for operator, chosen in zip(problem.operators, choice, strict=True):
        given = dict.fromkeys(ports(operator, operator.variants[0]))
        runs = dict.fromkeys(ports(operator, operator.variants[chosen]))
        count += sum(port not in given for port in runs)
    return count
