"""Linear programmes by HiGHS, which scipy brings along, without the rest of scipy.

`scipy.optimize` is imported in more time than most models are optimised in, and what it asks of
HiGHS is the same as here. Where this scipy has HiGHS elsewhere, `scipy.optimize` is asked.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import cache
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]

_HIGHS = "scipy.optimize._highspy._core"


class Columns(NamedTuple):
    """A sparse matrix column by column: where each begins, its rows in order, its entries."""

    starts: Places
    rows: Places
    entries: Floats
    height: int

    @classmethod
    def of(
        cls,
        rows: Sequence[int],
        columns: Sequence[int],
        entries: Sequence[int],
        shape: tuple[int, int],
    ) -> Columns:
        """Entries in any order; those of one place are added."""
        height, width = shape
        given = np.array(columns, dtype=np.int64) * height + np.array(rows, dtype=np.int64)
        places, which = np.unique(given, return_inverse=True)
        starts = np.searchsorted(places, np.arange(width + 1) * height)
        summed = np.bincount(which, weights=entries).astype(np.float64)
        return cls(starts, places % height, summed, height)


class LinearAnswer(NamedTuple):
    columns: Floats
    marginals: Floats
    """What one more on the right of each row would cost."""


def solve_linear(
    costs: Floats, matrix: Columns, right: Floats, upper: Floats, seconds: float
) -> LinearAnswer | None:
    """Columns from 0 to an upper limit whose rows equal the right side, at the least cost.

    None where none were found in this time.
    """
    highs = _highs()
    if highs is None:
        return _by_scipy(costs, matrix, right, upper, seconds)
    solver = highs._Highs()
    solver.passOptions(_options(highs, seconds))
    solver.passModel(_programme(highs, costs, matrix, right, upper))
    solver.run()
    if solver.getModelStatus() != highs.HighsModelStatus.kOptimal:
        return None
    solution = solver.getSolution()
    return LinearAnswer(np.array(solution.col_value), np.array(solution.row_dual))


def _options(highs: Any, seconds: float) -> Any:
    options = highs.HighsOptions()
    options.output_flag = options.log_to_console = False
    options.presolve = "on"
    options.time_limit = float(seconds)
    options.simplex_strategy = highs.simplex_constants.SimplexStrategy.kSimplexStrategyDual
    return options


def _programme(highs: Any, costs: Floats, matrix: Columns, right: Floats, upper: Floats) -> Any:
    programme = highs.HighsLp()
    programme.num_col_ = programme.a_matrix_.num_col_ = len(costs)
    programme.num_row_ = programme.a_matrix_.num_row_ = matrix.height
    programme.a_matrix_.format_ = highs.MatrixFormat.kColwise
    programme.a_matrix_.start_ = matrix.starts
    programme.a_matrix_.index_ = matrix.rows
    programme.a_matrix_.value_ = matrix.entries
    programme.col_cost_ = costs
    programme.col_lower_ = np.zeros(len(costs))
    programme.col_upper_ = np.where(np.isinf(upper), highs.kHighsInf, upper)
    programme.row_lower_ = programme.row_upper_ = right
    return programme


@cache
def _highs() -> Any | None:
    """The module of HiGHS inside scipy, under its own name, so that scipy finds it loaded."""
    if _HIGHS in sys.modules:
        return sys.modules[_HIGHS]
    package = find_spec("scipy.optimize")
    if package is None or not package.submodule_search_locations:
        return None
    folders = [str(Path(each) / "_highspy") for each in package.submodule_search_locations]
    spec = PathFinder.find_spec(_HIGHS, folders)
    if spec is None or spec.loader is None:
        return None
    module = module_from_spec(spec)
    sys.modules[_HIGHS] = module
    spec.loader.exec_module(module)
    return module


def _by_scipy(
    costs: Floats, matrix: Columns, right: Floats, upper: Floats, seconds: float
) -> LinearAnswer | None:
    from scipy.optimize import linprog
    from scipy.sparse import csc_array

    rows = csc_array(
        (matrix.entries, matrix.rows, matrix.starts), shape=(matrix.height, len(costs))
    )
    bounds = np.column_stack([np.zeros(len(costs)), upper])
    options = {"time_limit": seconds}
    answer = linprog(costs, A_eq=rows, b_eq=right, bounds=bounds, method="highs", options=options)
    if answer.status != 0:
        return None
    return LinearAnswer(answer.x, answer.eqlin.marginals)
