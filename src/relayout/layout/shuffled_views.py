"""What a reshape makes of axes that it merges or splits in another order."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from relayout.layout.blocks import UNIT, Block, Reshaping, Size, Sizes
from relayout.layout.permutation import Permutation
from relayout.layout.shuffle import Shuffle, StoredOrder, arranged, elements

MOST_ENTRIES = 1 << 18
"""Blocks of more elements than this are not looked at: to place each of them takes time."""


def carry_entries(given: Reshaping, order: StoredOrder) -> StoredOrder | None:
    """The order of the result where `order` reorders what one block of the reshape holds."""
    return _through(given.blocks, given.source, given.result, order)


def pull_entries(given: Reshaping, wanted: StoredOrder) -> StoredOrder | None:
    """The order of the source that `carry_entries` takes to `wanted`."""
    return _through(given.mirrored_blocks, given.result, given.source, wanted)


def _through(
    blocks: Sequence[Block], source: Sizes, result: Sizes, order: StoredOrder
) -> StoredOrder | None:
    wide = [block for block in blocks if not block.is_unit]
    found = _reordered(wide, source, order)
    if found is None:
        return None
    block, inner = found
    lengths = _numbers([source[axis] for axis in block.source])
    asked = _numbers([result[axis] for axis in block.result])
    if lengths is None or asked is None or prod(lengths) > MOST_ENTRIES:
        return None
    arrangement = arranged(elements(inner, lengths), asked)
    return None if arrangement is None else _placed(arrangement, block.result, len(result))


def _reordered(
    blocks: Sequence[Block], sizes: Sizes, order: StoredOrder
) -> tuple[Block, StoredOrder] | None:
    """The only block that an order reorders, and how; no block may leave its place."""
    if isinstance(order, Shuffle):
        block = next((block for block in blocks if order.axis in block.source), None)
        if block is None:
            return None
        return block, Shuffle(len(block.source), block.source.index(order.axis), order.data)
    stored = [axis for axis in order.axes if sizes[axis] != UNIT]
    torn: list[tuple[Block, StoredOrder]] = []
    for block in blocks:
        run, stored = stored[: len(block.source)], stored[len(block.source) :]
        if set(run) != set(block.source):
            return None
        if tuple(run) != block.source:
            torn.append((block, Permutation(tuple(map(block.source.index, run)))))
    return torn[0] if len(torn) == 1 else None


def _numbers(sizes: Sequence[Size]) -> tuple[int, ...] | None:
    if any(size.symbols for size in sizes):
        return None
    return tuple(size.number for size in sizes)


def _placed(order: StoredOrder, axes: Sequence[int], rank: int) -> StoredOrder:
    """An order of some axes as one of all of them."""
    if isinstance(order, Shuffle):
        return Shuffle(rank, axes[order.axis], order.data)
    placed = list(range(rank))
    for place, axis in zip(axes, order.axes, strict=True):
        placed[place] = axes[axis]
    return Permutation(tuple(placed))
