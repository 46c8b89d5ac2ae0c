"""Transposes that are written in another way: where that can be done, and what it takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from relayout.graph.read import Shape
from relayout.layout.moves import Move
from relayout.layout.permutation import Permutation
from relayout.ops.measure import lengths_of
from relayout.targets.prices.table import RuntimePrices

FLATTEN_TAKES_ANY_TYPE = 9


def can_be_rewritten(shape: Shape, lengths: Sequence[int]) -> bool:
    """Whether Reshapes can be given the lengths, and axes that count as 1 are that long.

    At most one length is left to be found.
    """
    known = [length for length in shape if isinstance(length, int)]
    are_units = all(dim == 1 for dim, length in zip(shape, lengths, strict=True) if length == 1)
    return len(shape) - len(known) <= 1 and 0 not in known and are_units


def least_price(
    prices: RuntimePrices,
    shape: Shape,
    order: Permutation,
    item_bytes: float,
    dims: Mapping[str, int],
) -> int:
    """Nanoseconds of a Transpose, written in another way where that can be done and takes less."""
    lengths = lengths_of(shape, dims)
    price = prices.best_transpose if can_be_rewritten(shape, lengths) else prices.transpose
    return price(Move.of(lengths, order), item_bytes)
