"""HiGHS asked directly gives, bit for bit, what it gives when `scipy.optimize` asks."""

from __future__ import annotations

import subprocess
import sys
from random import Random

import numpy as np
import pytest

from relayout.assign.strategies import linear_solver, programme
from relayout.assign.strategies.branch import solve_by_branching
from relayout.assign.strategies.components import split
from relayout.assign.strategies.linear_solver import Columns, LinearAnswer, solve_linear
from tests.assign.random_problems import SHAPES, random_problem

LATER = 1e9


def test_both_ways_to_highs_give_the_same_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def both(*question: object) -> LinearAnswer | None:
        ours = solve_linear(*question)  # type: ignore[arg-type]
        theirs = linear_solver._by_scipy(*question)  # type: ignore[arg-type]
        assert ours is not None
        assert theirs is not None
        assert np.array_equal(ours.columns, theirs.columns)
        assert np.array_equal(ours.marginals, theirs.marginals)
        asked.append(len(ours.columns))
        return ours

    monkeypatch.setattr(programme, "solve_linear", both)
    for seed in range(12):
        for component in split(random_problem(Random(seed), SHAPES["prices by pair"])):
            solve_by_branching(component, LATER)
    assert len(asked) > 12


def test_a_programme_without_an_answer_has_none() -> None:
    matrix = Columns.of([0], [0], [1], (1, 1))
    assert solve_linear(np.ones(1), matrix, np.full(1, 2.0), np.ones(1), 10.0) is None


def test_entries_of_one_place_are_added() -> None:
    matrix = Columns.of([1, 0, 1], [0, 1, 0], [1, 5, 2], (2, 2))
    assert matrix.starts.tolist() == [0, 1, 2]
    assert matrix.rows.tolist() == [1, 0]
    assert matrix.entries.tolist() == [3.0, 5.0]


@pytest.mark.parametrize("first", ["scipy.optimize", "relayout"])
def test_scipy_works_beside_it_whichever_comes_first(first: str) -> None:
    ours = "from relayout.assign.strategies import linear_solver; assert linear_solver._highs()"
    theirs = "from scipy.optimize import linprog; assert linprog([1.0], bounds=(2, 3)).fun == 2"
    lines = [ours, theirs] if first == "relayout" else [theirs, ours]
    subprocess.run([sys.executable, "-c", "\n".join(lines)], check=True)
