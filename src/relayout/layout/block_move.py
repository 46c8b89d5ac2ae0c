"""DepthToSpace and SpaceToDepth as what they do to axes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from relayout.layout.blocks import Size, Sizes
from relayout.layout.permutation import Permutation

BLOCK_MOVES = ("DepthToSpace", "SpaceToDepth")
MODES = ("DCR", "CRD")

Factors: TypeAlias = tuple[tuple[int, ...], ...]

_CHANNELS_APART: Factors = ((0,), (1, 2, 3), (4,), (5,))
"""The factors of batch, channels, height and width, where channels are split."""
_PIXELS_APART: Factors = ((0,), (1,), (2, 3), (4, 5))
"""And where height and width are."""


@dataclass(frozen=True, slots=True)
class BlockMove:
    """Blocks of pixels that become channels, or the other way round."""

    op_type: str
    block: int
    mode: str
    """Whether the channels of a block are counted before (CRD) or after (DCR) its pixels."""

    @property
    def spreads(self) -> bool:
        """Whether channels become pixels."""
        return self.op_type == "DepthToSpace"

    def between(
        self, given: Sizes, order: Permutation, result_order: Permutation
    ) -> tuple[Sizes, Permutation, Sizes, Sizes] | None:
        """The same between other orders: the lengths after the first Reshape, the Transpose, the
        lengths after it, and those of the result.
        """
        links = self.links(given)
        if links is None:
            return None
        tall, move, merged = links
        apart = _CHANNELS_APART if self.spreads else _PIXELS_APART
        joined = _PIXELS_APART if self.spreads else _CHANNELS_APART
        stored = [factor for axis in order for factor in apart[axis]]
        wanted = [move.axes[place] for axis in result_order for place in joined[axis]]
        perm = Permutation(tuple(stored.index(factor) for factor in wanted))
        split, moved = (tuple(tall[factor] for factor in each) for each in (stored, wanted))
        return split, perm, moved, result_order.reorder(merged)

    def links(self, given: Sizes) -> tuple[Sizes, Permutation, Sizes] | None:
        """As Reshape, Transpose, Reshape; None where the shape cannot be divided into blocks."""
        if len(given) != 4:
            return None
        batch, channels, height, width = given
        b = Size(self.block)
        if self.spreads:
            depth = channels.over(b * b)
            if depth is None:
                return None
            split = (depth, b, b) if self.mode == "CRD" else (b, b, depth)
            order = _SPREAD[self.mode]
            return (batch, *split, height, width), order, (batch, depth, height * b, width * b)
        rows, columns = height.over(b), width.over(b)
        if rows is None or columns is None:
            return None
        gather = _GATHERED[self.mode]
        tall = (batch, channels, rows, b, columns, b)
        return tall, gather, (batch, channels * b * b, rows, columns)


_SPREAD = {"DCR": Permutation.of(0, 3, 4, 1, 5, 2), "CRD": Permutation.of(0, 1, 4, 2, 5, 3)}
"""From batch, split channels, height, width to each pixel followed by its place in the block."""

_GATHERED = {"DCR": Permutation.of(0, 3, 5, 1, 2, 4), "CRD": Permutation.of(0, 1, 3, 5, 2, 4)}
