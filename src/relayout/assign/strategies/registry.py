"""The strategies by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TypeAlias

from relayout.assign.assignment import Assignment
from relayout.assign.problem import LayoutProblem
from relayout.assign.strategies.auto_nhwc import solve_auto_nhwc
from relayout.assign.strategies.exact import solve
from relayout.assign.strategies.greedy import solve_greedy
from relayout.assign.strategies.naive import solve_naive
from relayout.assign.strategies.preset import solve_preset, solve_preset_plus
from relayout.assign.strategies.transmit import solve_transmit
from relayout.errors import RelayoutError

Strategy: TypeAlias = Callable[[LayoutProblem], Assignment]
"""Chooses one variant per operator; sees no ONNX."""

EXACT = "exact"
STRATEGIES: Mapping[str, Strategy] = {
    "naive": solve_naive,
    "auto-nhwc": solve_auto_nhwc,
    "transmit": solve_transmit,
    "greedy": solve_greedy,
    "preset": solve_preset,
    "preset-plus": solve_preset_plus,
    EXACT: solve,
}
"""From the simplest to the one that proves its answer."""

ISOLATING = ("naive", "auto-nhwc")
"""Those that put Transposes around each operator and leave it to others to cancel them."""


def strategy_of(name: str, budget_seconds: float = 10.0) -> Strategy:
    """The strategy of a name; only the exact one searches, and so has use for a budget."""
    if name == EXACT:
        return partial(solve, budget_seconds=budget_seconds)
    if name not in STRATEGIES:
        known = ", ".join(STRATEGIES)
        raise RelayoutError(f"unknown strategy {name!r}; the strategies are {known}")
    return STRATEGIES[name]
