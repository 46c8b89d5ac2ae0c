"""How long the exact strategy takes on random layered graphs, from 1,000 operators up.

    python -m benchmarks.assign_scale [LARGEST] [ORDERS] [FREE] [WINDOW]

FREE is the share of operators that run in any order; operators read values at most WINDOW back.
The times are kept, in units of a fixed piece of Python, and compared with those of the last run.
"""

from __future__ import annotations

import sys
from random import Random
from time import process_time

from benchmarks.kept import compared, yardstick
from relayout.assign.problem import LayoutProblem, Operator, Value, Variant
from relayout.assign.strategies.exact import solve


def layered(count: int, orders: int, free: float, window: int) -> LayoutProblem:
    """Operators that read one to three recent values; some run in any order, others in one."""
    random = Random(0)
    names = tuple(f"order{order}" for order in range(orders))
    operators = []
    for index in range(count):
        near = range(max(0, index - window), index)
        arity = min(len(near), random.choice((1, 1, 2, 3)))
        operands = tuple(random.choice(near) for _ in range(arity))
        fixed = random.randrange(orders)
        allowed = range(orders) if random.random() < free else [fixed]
        variants = tuple(Variant((order,) * arity, (order,)) for order in allowed)
        operators.append(Operator(f"op{index}", operands, (index,), variants))
    values = [Value(f"v{index}", names, random.randint(1, 100)) for index in range(count)]
    return LayoutProblem(tuple(operators), tuple(values))


def main(largest: int, orders: int, free: float, window: int) -> None:
    print(f"{orders} orders, {free:.0%} of the operators run in any of them, window {window}")
    print(f"{'operators':>10} {'build s':>8} {'solve s':>8} {'growth':>7}  answer")
    before = 0.0
    figures: dict[str, float] = {}
    for count in (1_000, 3_000, 10_000, 30_000, 100_000):
        if count > largest:
            break
        start = process_time()
        problem = layered(count, orders, free, window)
        built = process_time()
        assignment = solve(problem, budget_seconds=60.0)
        solved = process_time() - built
        growth = f"{solved / before:.2f}" if before else ""
        print(f"{count:10,} {built - start:8.2f} {solved:8.2f} {growth:>7}  {assignment}")
        before = solved
        figures[f"{count} operators, {orders} orders, {free}, {window}"] = solved / yardstick()
    for line in compared("assign_scale", figures):
        print(line)


if __name__ == "__main__":
    given = [*sys.argv[1:], *("100000", "2", "0.7", "20")[len(sys.argv) - 1 :]]
    main(int(given[0]), int(given[1]), float(given[2]), int(given[3]))
