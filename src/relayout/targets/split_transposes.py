"""Transposes as two of faster kinds: where that can be written, and what it takes."""

from __future__ import annotations

from collections.abc import Mapping

from relayout.graph.read import Shape
from relayout.layout.moves import Move
from relayout.layout.permutation import Permutation
from relayout.ops.measure import lengths_of
from relayout.targets.prices.table import RuntimePrices

FLATTEN_TAKES_ANY_TYPE = 9


def can_be_split(shape: Shape) -> bool:
    """Whether the Reshape between two Transposes can be given its lengths: one may be open."""
    known = [length for length in shape if isinstance(length, int)]
    return len(shape) - len(known) <= 1 and 0 not in known


def least_price(
    prices: RuntimePrices,
    shape: Shape,
    order: Permutation,
    item_bytes: float,
    dims: Mapping[str, int],
) -> int:
    """Nanoseconds of a Transpose, written as two where that can be done and takes less."""
    move = Move.of(lengths_of(shape, dims), order)
    price = prices.best_transpose if can_be_split(shape) else prices.transpose
    return price(move, item_bytes)
