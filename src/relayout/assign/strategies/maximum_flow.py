"""Maximum flow in exact integers of any size, and the largest source side of a minimum cut."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

_BITS = 30
"""Capacities given to the solver stay below this power of two.

The solver takes 64-bit capacities but drops their upper half without a word, and the sum of two
opposite capacities must not overflow either.
"""
_WORD = 1 << 61
"""From here on sums of capacities need Python's integers."""

Integers = npt.NDArray[np.int64]


class Flow(NamedTuple):
    """The net flow of each arc given, never against it, and the nodes on the source's side."""

    amounts: list[int]
    source_side: npt.NDArray[np.bool_]


def solve_flow(size: int, tails: Integers, heads: Integers, capacities: list[int]) -> Flow:
    """Maximum flow from node 0 to node 1; no arc is given twice.

    Capacities too large for the solver are pushed in phases, the leading digits first.
    """
    exact = np.array(capacities, dtype=object if sum(capacities) >= _WORD else np.int64)
    low, high, forth, back, slot = _pairs(size, tails, heads, exact)
    net = np.zeros_like(forth)
    ceiling = max(capacities)
    while True:
        shift = max(0, ceiling.bit_length() - _BITS)
        forward = np.minimum(forth - net, ceiling) >> shift
        backward = np.minimum(back + net, ceiling) >> shift
        net = net + (_push(size, low, high, forward, backward) << shift)
        if shift == 0:
            break
        # The cut this phase filled has less than one of its units left in each direction of a pair.
        ceiling = min(ceiling, 2 * len(low) << shift)
    side = _source_side(size, low, high, forth - net > 0, back + net > 0)
    signed = np.where(tails < heads, net[slot], -net[slot])
    return Flow([int(amount) for amount in np.maximum(signed, 0)], side)


def _pairs(
    size: int, tails: Integers, heads: Integers, capacities: npt.NDArray[np.generic]
) -> tuple[Integers, Integers, Integers, Integers, Integers]:
    """Both directions between two nodes as one pair (low, high), and the pair of each arc."""
    keys = np.minimum(tails, heads) * size + np.maximum(tails, heads)
    pairs, slot = np.unique(keys, return_inverse=True)
    forth = np.zeros(len(pairs), dtype=capacities.dtype)
    back = np.zeros(len(pairs), dtype=capacities.dtype)
    forward = tails < heads
    forth[slot[forward]] = capacities[forward]
    back[slot[~forward]] = capacities[~forward]
    return pairs // size, pairs % size, forth, back, slot


def _push(
    size: int, low: Integers, high: Integers, forward: Integers, backward: Integers
) -> Integers:
    """The net flow from low to high of a maximum flow within these capacities."""
    # Models without a choice need no flow, and scipy takes longer to import than they do.
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import maximum_flow

    rows, columns = np.concatenate([low, high]), np.concatenate([high, low])
    data = np.concatenate([forward, backward]).astype(np.int64)
    # Each entry holds where it came from, to find the answer of the solver again.
    places = csr_array((np.arange(1, len(data) + 1), (rows, columns)), shape=(size, size))
    places.sort_indices()
    graph = csr_array((data[places.data - 1], places.indices, places.indptr), shape=(size, size))
    flow = maximum_flow(graph, 0, 1).flow
    flow.sort_indices()
    if flow.nnz != graph.nnz:
        raise ArithmeticError("the flow solver changed the network")
    net = np.empty_like(data)
    net[places.data - 1] = flow.data
    return net[: len(low)].astype(forward.dtype)


def _source_side(
    size: int,
    low: Integers,
    high: Integers,
    forward: npt.NDArray[np.bool_],
    backward: npt.NDArray[np.bool_],
) -> npt.NDArray[np.bool_]:
    """All nodes from which the sink cannot be reached any more."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import breadth_first_order

    rows = np.concatenate([high[forward], low[backward]])
    columns = np.concatenate([low[forward], high[backward]])
    ones = np.ones(len(rows), dtype=np.int8)
    reverse = csr_array((ones, (rows, columns)), shape=(size, size))
    reached = breadth_first_order(reverse, 1, return_predecessors=False)
    side = np.ones(size, dtype=np.bool_)
    side[reached] = False
    return side
