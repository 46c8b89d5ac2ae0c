"""Maximum flow against all cuts of small networks."""

from __future__ import annotations

from itertools import pairwise, product
from random import Random

import pytest

from relayout.assign.strategies.maximum_flow import SINK, SOURCE, Arc, solve_flow

BEYOND_64_BITS = 10**30


def _network(random: Random, largest: int) -> tuple[int, dict[Arc, int]]:
    size = random.randint(2, 7)
    pairs = [(tail, head) for tail in range(size) for head in range(size) if tail != head]
    chosen = random.sample(pairs, random.randint(1, len(pairs)))
    return size, {arc: random.randint(1, largest) for arc in chosen}


def _cuts(size: int, capacities: dict[Arc, int]) -> dict[tuple[bool, ...], int]:
    """Every choice of a source side, with what crosses from it to the rest."""
    sides = [(True, False, *rest) for rest in product((True, False), repeat=size - 2)]
    return {
        side: sum(c for (tail, head), c in capacities.items() if side[tail] and not side[head])
        for side in sides
    }


@pytest.mark.parametrize("largest", [3, 100, BEYOND_64_BITS])
@pytest.mark.parametrize("seed", range(60))
def test_the_flow_is_as_large_as_the_least_cut_and_shows_its_largest_side(
    seed: int, largest: int
) -> None:
    size, capacities = _network(Random(seed), largest)
    flow = solve_flow(size, capacities)
    gained = [0] * size
    for (tail, head), amount in flow.amounts.items():
        assert 0 <= amount <= capacities[tail, head]
        assert not (amount and flow.amounts.get((head, tail)))
        gained[tail] -= amount
        gained[head] += amount
    assert not any(gained[SINK + 1 :])
    cuts = _cuts(size, capacities)
    least = min(cuts.values())
    assert gained[SINK] == least == -gained[SOURCE]
    largest_side = max((side for side in cuts if cuts[side] == least), key=sum)
    assert tuple(flow.source_side) == largest_side


def test_a_long_chain_takes_no_recursion() -> None:
    length = 5_000
    nodes = [SOURCE, *range(2, length), SINK]
    flow = solve_flow(length, dict.fromkeys(pairwise(nodes), 7))
    assert set(flow.amounts.values()) == {7}
