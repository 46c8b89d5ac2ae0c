"""The atomic axes of a view: runs of elements, cut and joined by divisibility of their sizes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from relayout.layout.blocks import UNIT, Size


@dataclass(frozen=True, slots=True)
class StridedAxis:
    """An axis of `size` steps, each of which goes `stride` elements of the source further."""

    size: Size
    stride: Size

    @property
    def span(self) -> Size:
        """How far in the source the axis reaches."""
        return self.size * self.stride

    def cut(self, outer: Size) -> tuple[StridedAxis, StridedAxis] | None:
        """An outer axis of that size and the inner one; None where the size is not a divisor."""
        inner = self.size.over(outer)
        return (
            None
            if inner is None
            else (StridedAxis(outer, inner * self.stride), StridedAxis(inner, self.stride))
        )

    def contains(self, other: StridedAxis) -> bool:
        """Whether the other axis steps over a part of the same elements."""
        return other.stride.over(self.stride) is not None and self.span.over(other.span) is not None

    @property
    def depth(self) -> tuple[int, int]:
        """Orders the axes of one source from the innermost outwards.

        There each stride divides the next, so it has no smaller number and no fewer symbols.
        """
        return self.stride.number, len(self.stride.symbols)


def in_source_order(modes: Iterable[StridedAxis]) -> list[StridedAxis]:
    return sorted(modes, key=lambda mode: mode.depth, reverse=True)


def joined(modes: Iterable[StridedAxis]) -> tuple[StridedAxis, ...]:
    """The same steps with as few axes as possible, and no unit axes."""
    found: list[StridedAxis] = []
    for mode in modes:
        if found and found[-1].stride == mode.span:
            found[-1] = StridedAxis(found[-1].size * mode.size, mode.stride)
        elif mode.size != UNIT:
            found.append(mode)
    return tuple(found)


def cut_into(modes: Sequence[StridedAxis], sizes: Iterable[Size]) -> list[list[StridedAxis]] | None:
    """Consecutive pieces of these sizes; None where a border falls between divisors."""
    rest = list(reversed(modes))
    pieces = []
    for size in sizes:
        piece = _take(rest, size)
        if piece is None:
            return None
        pieces.append(piece)
    return pieces


def _take(rest: list[StridedAxis], wanted: Size) -> list[StridedAxis] | None:
    """Take this many elements from the end of `rest`; None where it cannot be cut there."""
    piece: list[StridedAxis] = []
    while wanted != UNIT and rest:
        mode = rest.pop()
        left = wanted.over(mode.size)
        if left is not None:
            piece.append(mode)
            wanted = left
            continue
        parts = mode.cut(wanted)
        if parts is None:
            return None
        piece.append(parts[0])
        rest.append(parts[1])
        wanted = UNIT
    return piece if wanted == UNIT else None
