from __future__ import annotations

from dataclasses import replace
from random import Random

from relayout.assign.assignment import Assignment
from relayout.assign.certificate import verify
from relayout.assign.component import Proof
from relayout.assign.encoding import certificate
from relayout.assign.problem import LayoutProblem, Operator, Value
from relayout.assign.strategies.exact import solve
from tests.assign.random_problems import Shape, random_problem

SEARCHED = Shape(operators=40, orders=3, variants=3, labels=True, paired=0.5)
TIMES = 4


def test_equal_blocks_are_searched_once_and_each_is_proved() -> None:
    block = random_problem(Random(0), SEARCHED)
    alone, problem = solve(block), side_by_side(*[block] * TIMES)
    assignment = solve(problem)
    assert assignment.choice == alone.choice * TIMES
    assert assignment.cost == alone.cost * TIMES
    assert verify(certificate(assignment), problem) == []
    first, *others = searched(assignment)
    assert len(others) == TIMES - 1
    assert all(other is first for other in others)


def test_equal_blocks_of_other_prices_are_searched_apart() -> None:
    block = random_problem(Random(0), SEARCHED)
    dear = replace(block, values=tuple(dearer(value) for value in block.values))
    problem = side_by_side(block, dear)
    assignment = solve(problem)
    assert assignment.choice == solve(block).choice + solve(dear).choice
    assert assignment.cost == solve(block).cost + solve(dear).cost
    assert verify(certificate(assignment), problem) == []
    first, second = searched(assignment)
    assert first != second


def side_by_side(*blocks: LayoutProblem) -> LayoutProblem:
    """Blocks of a network that have nothing to do with each other."""
    operators: list[Operator] = []
    values: list[Value] = []
    for number, block in enumerate(blocks):
        start = len(values)
        operators += [
            replace(
                operator,
                name=f"{operator.name} of block {number}",
                operands=tuple(start + value for value in operator.operands),
                results=tuple(start + value for value in operator.results),
            )
            for operator in block.operators
        ]
        values += [replace(each, name=f"{each.name} of block {number}") for each in block.values]
    return LayoutProblem(tuple(operators), tuple(values))


def dearer(value: Value) -> Value:
    """A value whose copies cost thrice as much, where they all cost the same."""
    price = value.copy_price
    return replace(value, copy_price=3 * price) if isinstance(price, int) else value


def searched(assignment: Assignment) -> list[Proof]:
    """The proofs that branch and bound found."""
    return [part.proof for part in assignment.parts if part.kind in {"dual", "tree"}]
