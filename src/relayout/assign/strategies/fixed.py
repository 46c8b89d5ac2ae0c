"""Components and cases in which nothing is left to choose between orders."""

from __future__ import annotations

from collections.abc import Sequence

from relayout.assign.bound import cost_of
from relayout.assign.component import Component, Decided, Leaf, Offer
from relayout.assign.problem import price_between


def solve_fixed(component: Component) -> Decided:
    """A component whose members have one option each."""
    chosen = (0,) * len(component.members)
    cost = cost_of(component, chosen)
    return Decided(component, chosen, cost, cost, "forced", fixed_leaf(component, chosen))


def fixed_leaf(component: Component, chosen: Sequence[int]) -> Leaf:
    """The proof where each member has this option only: the first reader of a copy pays it."""
    offers: dict[int, dict[int, Offer]] = {}
    options = [m.options[option] for m, option in zip(component.members, chosen, strict=True)]
    stored = {value: order for option in options for value, order in option.writes}
    for reader, option in enumerate(options):
        for index, order in option.reads:
            if order == stored[index]:
                continue
            price = price_between(component.values[index].copy_price, stored[index], order)
            offers.setdefault(index, {}).setdefault(order, (reader, order, price))
    return Leaf(1, {index: tuple(each.values()) for index, each in offers.items()}, {})
