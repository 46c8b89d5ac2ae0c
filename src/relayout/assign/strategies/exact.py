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
        parts = _decide(split(problem), deadline, partial(_fix_and_search, SearchOnce()))
    choice = _choice(len(problem.operators), parts)
    cost, bound = sum(part.cost for part in parts), sum(part.bound for part in parts)
    if evaluate(problem, choice) != cost:
        raise ArithmeticError("the components do not add up to the problem")
    return Assignment(choice, cost, bound, tuple(parts), _notes(parts, budget_seconds))


def _decide(
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
    for count, (index, component) in enumerate(sorted(hard, key=_weight)):
        share = (deadline - monotonic()) / (len(hard) - count)
        decided[index] = decide_hard(component, monotonic() + share)
    return [decided[index] for index in range(len(components))]


def _fix_and_search(search: SearchOnce, component: Component, deadline: float) -> Decided:
    """A component of more than two labels: fix what can be fixed, then search what is left."""
    steps, allowed = persistent(component, deadline)
    if not steps:
        return search(component, deadline)
    parts = _decide(split_open(component, allowed), deadline, search)
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


def _weight(case: tuple[int, Component]) -> int:
    return len(case[1].members)


def _notes(parts: list[Decided], budget_seconds: float) -> tuple[str, ...]:
    open_ = sum(part.bound < part.cost for part in parts)
    if not open_:
        return ()
    components = f"{open_} of {len(parts)} components"
    return (f"{components} not proved least within {budget_seconds:.3g} s",)
