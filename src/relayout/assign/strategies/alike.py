"""Components that differ in names only, as repeated blocks give them, are searched once."""

from __future__ import annotations

from typing import TypeAlias

from relayout.assign.component import Component, Decided
from relayout.assign.strategies.branch import solve_by_branching

_Form: TypeAlias = tuple[object, ...]
"""All of a component that a search looks at: not its names, nor what the numbers stand for."""


class SearchOnce:
    """Branch and bound that takes over what it has proved for a component of the same form."""

    def __init__(self) -> None:
        self._proved: dict[_Form, Decided] = {}

    def __call__(self, component: Component, deadline: float) -> Decided:
        """The best choice found until the deadline, with the bound proved until then."""
        form = _form(component)
        if form in self._proved:
            return self._proved[form]._replace(component=component)
        decided = solve_by_branching(component, deadline)
        if decided.bound == decided.cost:
            self._proved[form] = decided
        return decided


def _form(component: Component) -> _Form:
    """Choice and proof speak of members, options and values by their positions."""
    return (
        tuple(tuple(option[1:] for option in member.options) for member in component.members),
        tuple(
            (len(value.orders), value.copy_price, value.producer, value.readers)
            for value in component.values
        ),
    )
