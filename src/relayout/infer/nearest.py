"""The nearest known operator before and after each operator, in two walks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

Found: TypeAlias = tuple[int, int]
"""How many steps away an operator is, and which it is."""


def nearest_known(
    order: Iterable[int], neighbours: Sequence[Sequence[int]], known: Sequence[bool]
) -> list[Found | None]:
    """For each operator the nearest known one that its neighbours lead to, itself included.

    `order` names every operator after its neighbours. Of several that are equally near it is the
    one that comes first in the graph.
    """
    table: list[Found | None] = [None] * len(known)
    for operator in order:
        if known[operator]:
            table[operator] = (0, operator)
            continue
        beyond = (table[neighbour] for neighbour in neighbours[operator])
        table[operator] = min(((f[0] + 1, f[1]) for f in beyond if f is not None), default=None)
    return table
