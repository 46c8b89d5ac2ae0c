"""A linear programme with integer costs, whose dual is found to any precision.

The solver computes in floating point, so one answer is exact to some ten digits only. But any
dual answer restates the costs as what they still exceed it by, without changing the question;
where these remainders are small, the solver sees their digits, and answers with a correction.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from relayout.assign.strategies.linear_solver import Columns, Floats, solve_linear

UNITS = 720720
"""Dual amounts are integers in units of one over this: vertices have small denominators."""
_WIDTH = 2.0**20
"""The largest cost the solver is given."""

Exact = npt.NDArray[np.object_]


class Dual(NamedTuple):
    """Amounts for the rows "at most 0", never negative, and for those "equal"."""

    at_most: Exact
    equal: Exact


class _Rows:
    def __init__(self) -> None:
        self.count = 0
        self.rows: list[int] = []
        self.columns: list[int] = []
        self.entries: list[int] = []

    def add(self, plus: Sequence[int], minus: Sequence[int]) -> int:
        self.rows += [self.count] * (len(plus) + len(minus))
        self.columns += [*plus, *minus]
        self.entries += [1] * len(plus) + [-1] * len(minus)
        self.count += 1
        return self.count - 1

    def weigh(self, amounts: Exact, width: int) -> Exact:
        """The sum of all rows, each times its amount."""
        total = np.zeros(width, dtype=object)
        if not amounts.any():
            return total
        entries = np.array(self.entries, dtype=object)
        np.add.at(total, self.columns, entries * amounts[self.rows])
        return total


class Programme:
    """Columns from 0 to an upper limit, rows of ones and minus ones, the least total cost."""

    def __init__(self) -> None:
        self.costs: list[int] = []
        self._at_most = _Rows()
        self._equal = _Rows()
        self._right: list[float] = []

    def column(self, cost: int) -> int:
        self.costs.append(cost)
        return len(self.costs) - 1

    def at_most(self, plus: Sequence[int], minus: Sequence[int]) -> int:
        """The columns `plus` exceed the columns `minus` by at most 0; gives the row's number."""
        return self._at_most.add(plus, minus)

    def equal(self, plus: Sequence[int], minus: Sequence[int], right: int = 0) -> int:
        """The columns `plus` exceed the columns `minus` by exactly this; gives the row's number."""
        self._right.append(right)
        return self._equal.add(plus, minus)

    def nothing(self) -> Dual:
        """The dual answer that proves nothing yet."""
        zeros = [np.zeros(rows.count, dtype=object) for rows in (self._at_most, self._equal)]
        return Dual(*zeros)

    def improve(
        self, dual: Dual, upper: Floats, gap: int, seconds: float
    ) -> tuple[Floats, Dual] | None:
        """The columns, and a dual answer better by up to this gap; None if time runs out."""
        if seconds <= 0:
            return None
        costs, unit = self._remainders(dual, upper, gap)
        right = np.concatenate([np.zeros(self._at_most.count), self._right])
        answer = solve_linear(costs, self._matrix, right, _padded(upper, len(costs)), seconds)
        if answer is None:
            return None
        found = [round(amount) for amount in (answer.marginals * float(unit)).tolist()]
        change = np.array(found, dtype=object)
        kept = np.maximum(dual.at_most - change[: self._at_most.count], 0)
        columns = answer.columns[: len(self.costs)]
        return columns, Dual(kept, dual.equal + change[self._at_most.count :])

    @cached_property
    def _matrix(self) -> Columns:
        """All rows, those "at most" with a slack each; no row is added once they were asked for."""
        width, above = len(self.costs), self._at_most.count
        slacks = range(above)
        rows = [*self._at_most.rows, *slacks, *(row + above for row in self._equal.rows)]
        columns = [*self._at_most.columns, *range(width, width + above), *self._equal.columns]
        entries = [*self._at_most.entries, *(1 for _ in slacks), *self._equal.entries]
        return Columns.of(rows, columns, entries, (above + self._equal.count, width + above))

    def _remainders(self, dual: Dual, upper: Floats, gap: int) -> tuple[Floats, int]:
        """What each column, and each row's slack, still costs, in a unit the solver can see.

        Remainders far above the gap cannot matter, so they need not be distinguished.
        """
        width = len(self.costs)
        costs = np.array(self.costs, dtype=object) * UNITS
        costs += self._at_most.weigh(dual.at_most, width) - self._equal.weigh(dual.equal, width)
        remainders = np.concatenate([costs, dual.at_most])
        largest = min(max(map(abs, remainders), default=0), gap * UNITS * 1024)
        unit = max(1, int(largest / _WIDTH)) if largest > UNITS * _WIDTH else UNITS
        scaled = np.array([_ratio(each, unit) for each in remainders])
        return np.where(np.isinf(_padded(upper, len(scaled))), np.maximum(scaled, 0), scaled), unit


def _ratio(amount: int, unit: int) -> float:
    return float(min(max(amount / unit, -_WIDTH), _WIDTH))


def _padded(upper: Floats, length: int) -> Floats:
    return np.concatenate([upper, np.full(length - len(upper), np.inf)])
