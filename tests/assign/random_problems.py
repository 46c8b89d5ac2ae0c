"""Small random layout problems with everything a model can show, and brute force for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from random import Random

from relayout.assign.problem import (
    CopyPrice,
    LayoutProblem,
    Operator,
    Value,
    Variant,
)


@dataclass(frozen=True, slots=True)
class Shape:
    """What random problems look like."""

    operators: int = 6
    orders: int = 3
    variants: int = 4
    paired: float = 0.2
    """How many values have a price by pair of orders."""
    largest: int = 5
    """The largest price."""
    forced: float = 0.3
    labels: bool = False
    """Whether every operator moves all its values to one order, as elementwise operators do."""


SHAPES = {
    "anything": Shape(),
    "labels, two orders": Shape(labels=True, variants=2, orders=2, operators=10),
    "two orders": Shape(orders=2, variants=2, operators=9),
    "prices by pair": Shape(orders=4, paired=0.6),
    "labels, three orders": Shape(labels=True, variants=3, orders=3, operators=8),
    "labels, four orders, one price": Shape(labels=True, orders=4, paired=0.0, operators=7),
    "prices beyond 64 bits, two orders": Shape(
        labels=True, variants=2, orders=2, operators=10, largest=2**70
    ),
    "large prices": Shape(variants=3, largest=2**50),
    "no price": Shape(largest=0),
}
CHOICES = 3000
"""Problems with more choices than this are left to the others."""


def random_problem(random: Random, shape: Shape) -> LayoutProblem:
    values: list[Value] = []
    operators: list[Operator] = []
    for index in range(random.randint(2, shape.operators)):
        readable = list(range(len(values)))
        operands = tuple(random.choice(readable) for _ in range(random.randint(0, 3)) if readable)
        results = tuple(range(len(values), len(values) + random.choice((0, 1, 1, 1, 2))))
        values += [_value(random, shape, f"v{number}") for number in results]
        counts = [len(values[value].orders) for value in operands + results]
        variants = _variants(random, shape, counts, len(operands))
        operators.append(Operator(f"op{index}", operands, results, variants))
    return LayoutProblem(tuple(operators), tuple(values))


def brute_force(problem: LayoutProblem) -> int:
    """The least cost over all choices."""
    choices = product(*(range(len(operator.variants)) for operator in problem.operators))
    return min(cost_of(problem, choice) for choice in choices)


def cost_of(problem: LayoutProblem, choice: Sequence[int]) -> int:
    """The cost by the definition of a problem: variants, and one copy a value and wanted order."""
    taken = [each.variants[n] for each, n in zip(problem.operators, choice, strict=True)]
    stored = {
        value: order
        for operator, variant in zip(problem.operators, taken, strict=True)
        for value, order in zip(operator.results, variant.writes, strict=True)
    }
    wanted = {
        (value, order)
        for operator, variant in zip(problem.operators, taken, strict=True)
        for value, order in zip(operator.operands, variant.reads, strict=True)
        if order != stored[value]
    }
    return sum(variant.price for variant in taken) + sum(
        price if isinstance(price, int) else price[stored[value]][order]
        for value, order in wanted
        for price in [problem.values[value].copy_price]
    )


def size(problem: LayoutProblem) -> int:
    """The number of choices brute force looks at."""
    total = 1
    for operator in problem.operators:
        total *= len(operator.variants)
    return total


def _value(random: Random, shape: Shape, name: str) -> Value:
    count = shape.orders if shape.labels else random.randint(1, shape.orders)
    return Value(name, tuple(f"o{i}" for i in range(count)), _copy_price(random, shape, count))


def _copy_price(random: Random, shape: Shape, count: int) -> CopyPrice:
    if random.random() >= shape.paired:
        return random.randint(0, shape.largest)
    rows = [[random.randint(0, shape.largest) for _ in range(count)] for _ in range(count)]
    return tuple(tuple(0 if i == j else p for j, p in enumerate(r)) for i, r in enumerate(rows))


def _variants(random: Random, shape: Shape, counts: list[int], arity: int) -> tuple[Variant, ...]:
    number = 1 if random.random() < shape.forced else random.randint(1, shape.variants)
    variants = []
    for key in range(number):
        label = (key + random.randint(0, 1) * (number == 1)) % max(shape.orders, 1)
        orders = [label if shape.labels else random.randrange(count) for count in counts]
        price = random.choice((0, 0, random.randint(0, shape.largest)))
        variants.append(Variant(tuple(orders[:arity]), tuple(orders[arity:]), price, key))
    return tuple(variants)
