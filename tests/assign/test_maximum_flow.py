"""Maximum flow against all cuts of small networks."""

from __future__ import annotations

from itertools import pairwise, product
from random import Random

import pytest

from relayout.assign.strategies.maximum_flow import SINK, SOURCE, Edge, solve_flow

BEYOND_64_BITS = 10**30


def _network(random: Random, largest: int) -> tuple[int, list[Edge]]:
    """Some edges join the same nodes, and some can be gone one way only."""
    size = random.randint(2, 7)
    pairs = [(tail, head) for tail in range(size) for head in range(size) if tail != head]
    chosen = random.choices(pairs, k=random.randint(1, len(pairs)))
    widths = [(random.randint(0, largest), random.randint(0, largest)) for _ in chosen]
    return size, [(*pair, *width) for pair, width in zip(chosen, widths, strict=True)]


def _cuts(size: int, edges: list[Edge]) -> dict[tuple[bool, ...], int]:
    """Every choice of a source side, with what crosses from it to the rest."""
    sides = [(True, False, *rest) for rest in product((True, False), repeat=size - 2)]
    return {
        side: sum(
            there if side[tail] else back
            for tail, head, there, back in edges
            if side[tail] != side[head]
        )
        for side in sides
    }


@pytest.mark.parametrize("largest", [3, 100, BEYOND_64_BITS])
@pytest.mark.parametrize("seed", range(60))
def test_the_flow_is_as_large_as_the_least_cut_and_shows_its_largest_side(
    seed: int, largest: int
) -> None:
    size, edges = _network(Random(seed), largest)
    flow = solve_flow(size, edges)
    gained = [0] * size
    for (tail, head, there, back), amount in zip(edges, flow.amounts, strict=True):
        assert -back <= amount <= there
        gained[tail] -= amount
        gained[head] += amount
    assert not any(gained[SINK + 1 :])
    cuts = _cuts(size, edges)
    least = min(cuts.values())
    assert gained[SINK] == least == -gained[SOURCE]
    largest_side = max((side for side in cuts if cuts[side] == least), key=sum)
    assert tuple(flow.source_side) == largest_side


def test_a_long_chain_takes_no_recursion() -> None:
    length = 5_000
    nodes = [SOURCE, *range(2, length), SINK]
    flow = solve_flow(length, [(tail, head, 7, 0) for tail, head in pairwise(nodes)])
    assert set(flow.amounts) == {7}
