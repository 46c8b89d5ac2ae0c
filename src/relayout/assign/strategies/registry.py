"""The strategies by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic
from typing import TypeAlias

from relayout.assign.assignment import Assignment
from relayout.assign.problem import LayoutProblem
from relayout.assign.strategies.auto_nhwc import solve_auto_nhwc, solve_auto_nhwc_majority
from relayout.assign.strategies.exact import solve
from relayout.assign.strategies.greedy import solve_greedy
from relayout.assign.strategies.naive import solve_naive
from relayout.assign.strategies.preset import solve_preset
from relayout.assign.strategies.preset_cost import solve_preset_cost
from relayout.assign.strategies.preset_plus import solve_preset_plus
from relayout.assign.strategies.transmit import solve_transmit
from relayout.registry.registry import Registry

DEFAULT_SECONDS = 10.0

Solver: TypeAlias = Callable[[LayoutProblem], Assignment]
"""Chooses one variant per operator; sees no ONNX."""

TimedSolver: TypeAlias = Callable[[LayoutProblem, float], Assignment]
"""A solver that may take some seconds, after which it gives the best it has found."""


@dataclass(frozen=True, slots=True)
class Strategy:
    """A named way to choose layouts, and what is known of it."""

    name: str
    search: TimedSolver
    proves: bool = False
    """Whether its assignments prove how good they are."""
    isolates: bool = False
    """Whether it puts Transposes around each operator and leaves it to others to cancel them."""
    by_kinds: bool = True
    """Whether it looks at what kinds of tensors there are; if not, they need not be inferred."""
    summary: str = ""
    """It in one line."""
    method: str = ""
    """The letter that it has in the document that compares methods of regions."""

    def __call__(self, problem: LayoutProblem, seconds: float = DEFAULT_SECONDS) -> Assignment:
        return self.search(problem, seconds)


@dataclass(slots=True)
class Budget:
    """Seconds of choosing, all attempts together."""

    seconds: float
    spent: float = 0.0

    @property
    def is_spent(self) -> bool:
        return self.spent >= self.seconds

    def within(self, strategy: Strategy) -> Solver:
        """A solver that spends from this budget."""

        def spending(problem: LayoutProblem) -> Assignment:
            since = monotonic()
            try:
                return strategy(problem, max(0.0, self.seconds - self.spent))
            finally:
                self.spent += monotonic() - since

        return spending


def _quick(solver: Solver) -> TimedSolver:
    """A solver that searches nothing, and so has no use for a budget."""
    return lambda problem, _seconds: solver(problem)


NAIVE = Strategy(
    "naive",
    _quick(solve_naive),
    method="A",
    isolates=True,
    summary="Transposes around each operator that demands an order",
)
AUTO_NHWC = Strategy(
    "auto-nhwc",
    _quick(solve_auto_nhwc),
    isolates=True,
    summary="forwards, each operator follows any operand that a Transpose stands before",
)
AUTO_NHWC_MAJORITY = Strategy(
    "auto-nhwc-majority",
    _quick(solve_auto_nhwc_majority),
    isolates=True,
    summary="forwards, each operator in the order that most of its operands are in",
)
TRANSMIT = Strategy(
    "transmit",
    _quick(solve_transmit),
    summary="demanded orders spread backwards, then forwards",
)
GREEDY = Strategy(
    "greedy",
    _quick(solve_greedy),
    method="P",
    summary="forwards, each operator with the copies that are cheapest for it",
)
PRESET = Strategy(
    "preset",
    _quick(solve_preset),
    method="B",
    summary="whole regions as most demands at their borders require",
)
PRESET_PLUS = Strategy(
    "preset-plus",
    _quick(solve_preset_plus),
    method="C",
    summary="like preset, and other regions join where all they read changed alike",
)
PRESET_COST = Strategy(
    "preset-cost",
    _quick(solve_preset_cost),
    summary="like preset, and regions join where that costs less",
)
EXACT = Strategy(
    "exact",
    solve,
    proves=True,
    by_kinds=False,
    summary="the least cost, with a proof",
)
STRATEGIES: Registry[Strategy] = Registry(
    "strategy",
    "relayout.strategies",
    {
        each.name: each
        for each in (
            NAIVE,
            AUTO_NHWC,
            AUTO_NHWC_MAJORITY,
            TRANSMIT,
            GREEDY,
            PRESET,
            PRESET_PLUS,
            PRESET_COST,
            EXACT,
        )
    },
    plural="strategies",
)
"""From the simplest to the one that proves its answer."""


def register_strategy(strategy: Strategy) -> None:
    """Let a strategy be asked for by its name; a name that is taken is refused."""
    STRATEGIES.register(strategy.name, strategy)


def strategy_of(strategy: str | Strategy) -> Strategy:
    """The strategy of a name; one that is given as a value is taken as it is."""
    return STRATEGIES.of(strategy)
