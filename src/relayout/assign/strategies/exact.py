"""The exact strategy: components, each by the simplest method that proves its answer."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from time import monotonic

from relayout.assign.assignment import Assignment
from relayout.assign.component import Component, Decided, Persistent
from relayout.assign.problem import LayoutProblem, evaluate
from relayout.assign.strategies.alike import SearchOnce
from relayout.assign.strategies.components import split, split_open
from relayout.assign.strategies.fixed import solve_fixed
from relayout.assign.strategies.gauge import gauge
from relayout.assign.strategies.persistency import persistent
from relayout.assign.strategies.two_orders import solve_two_orders
from relayout.graph.collector import paused_collector


def solve(problem: LayoutProblem, budget_seconds: float = 10.0) -> Assignment:
    """A choice of least cost with its proof; after the budget the best found, with its gap."""
    deadline = monotonic() + budget_seconds
    with paused_collector():
        parts = decide(split(problem), deadline, partial(_fix_and_search, SearchOnce()))
    choice = _choice(len(problem.operators), parts)
    cost, bound = sum(part.cost for part in parts), sum(part.bound for part in parts)
    if evaluate(problem, choice) != cost:
        raise ArithmeticError("the components do not add up to the problem")
    return Assignment(choice, cost, bound, tuple(parts), _notes(parts, budget_seconds))


def decide(
    components: list[Component], deadline: float, decide_hard: Callable[[Component, float], Decided]
) -> list[Decided]:
    """The components in the order given; the hard ones share the time, small ones first."""
    decided: dict[int, Decided] = {}
    hard: list[tuple[int, Component]] = []
    for index, component in enumerate(components):
        if all(len(member.options) == 1 for member in component.members):
            decided[index] = solve_fixed(component)
            continue
        labels = gauge(component)
        if labels is None:
            hard.append((index, component))
        else:
            decided[index] = solve_two_orders(component, labels)
    waiting = sorted(hard, key=_weight)
    while waiting:
        waiting = _decide_waiting(waiting, deadline, decide_hard, decided)
        if monotonic() >= deadline:
            break
    return [decided[index] for index in range(len(components))]


def _decide_waiting(
    waiting: list[tuple[int, Component]],
    deadline: float,
    decide_hard: Callable[[Component, float], Decided],
    decided: dict[int, Decided],
) -> list[tuple[int, Component]]:
    """Decide each within its share of the time; those for which it was not enough.

    They are decided anew while others have left time over: what is decided depends on how long
    anything took only where all the time is spent.
    """
    late = []
    for count, case in enumerate(waiting):
        index, component = case
        until = monotonic() + (deadline - monotonic()) / (len(waiting) - count)
        found = decide_hard(component, until)
        decided[index] = min(found, decided.get(index, found), key=_rank)
        if monotonic() >= until:
            late.append(case)
    return late


def _fix_and_search(search: SearchOnce, component: Component, deadline: float) -> Decided:
    """A component of more than two labels: fix what can be fixed, then search what is left."""
    steps, allowed = persistent(component, deadline)
    if not steps:
        return search(component, deadline)
    parts = decide(split_open(component, allowed), deadline, search)
    variants = _choice(len(component.members), parts)
    chosen = tuple(options[v] for options, v in zip(allowed, variants, strict=True))
    cost, bound = sum(part.cost for part in parts), sum(part.bound for part in parts)
    proof = Persistent(tuple(steps), tuple(parts))
    return Decided(component, chosen, cost, bound, "persistent", proof)


def _choice(operators: int, parts: list[Decided]) -> tuple[int, ...]:
    """The variant of each operator that its home component chose."""
    choice = [0] * operators
    for part in parts:
        for member, option in zip(part.component.members, part.chosen, strict=True):
            if member.home:
                choice[member.operator] = member.options[option].variant
    return tuple(choice)


def _rank(decided: Decided) -> tuple[int, int]:
    """Less is better: the cost, then how far below it the proved bound is."""
    return decided.cost, decided.cost - decided.bound


def _weight(case: tuple[int, Component]) -> int:
    return len(case[1].members)


def _notes(parts: list[Decided], budget_seconds: float) -> tuple[str, ...]:
    open_ = sum(part.bound < part.cost for part in parts)
    if not open_:
        return ()
    components = f"{open_} of {len(parts)} components"
    return (f"{components} not proved least within {budget_seconds:.3g} s",)
