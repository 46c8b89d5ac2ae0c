"""Windows that slide over spatial axes, and how they reach over borders."""

from __future__ import annotations

import math
from dataclasses import dataclass

from relayout.backends.litert.call import LiteCall
from relayout.backends.litert.flat_graph import FlatShape


@dataclass(frozen=True, slots=True)
class SlidingPads:
    """Windows over some spatial axes: sizes, steps, gaps, and what is added at both ends."""

    lengths: FlatShape
    """Of the spatial axes."""
    sizes: FlatShape
    strides: FlatShape
    dilations: FlatShape
    before: FlatShape
    after: FlatShape

    @property
    def reach(self) -> FlatShape:
        """How far a window reaches."""
        pairs = zip(self.sizes, self.dilations, strict=True)
        return tuple((size - 1) * gap + 1 for size, gap in pairs)

    @property
    def axes(self) -> tuple[FlatShape, FlatShape, FlatShape]:
        """What decides how SAME pads."""
        return self.lengths, self.reach, self.strides

    @property
    def is_valid(self) -> bool:
        return not any((*self.before, *self.after))

    @property
    def is_same(self) -> bool:
        """Whether LiteRT's SAME adds exactly this, with as many windows as asked for."""
        wanted = [same_pads(*axis) for axis in zip(*self.axes, strict=True)]
        return (
            wanted == list(zip(self.before, self.after, strict=True))
            and tuple(math.ceil(n / s) for n, s in zip(self.lengths, self.strides, strict=True))
            == self.counts
        )

    @property
    def counts(self) -> FlatShape:
        """How many windows there are along each axis."""
        axes = zip(self.lengths, self.before, self.after, self.reach, self.strides, strict=True)
        return tuple((n + b + a - reach) // stride + 1 for n, b, a, reach, stride in axes)


def same_pads(length: int, reach: int, stride: int) -> tuple[int, int]:
    """What SAME adds to an axis, the odd entry after it."""
    total = max((math.ceil(length / stride) - 1) * stride + reach - length, 0)
    return total // 2, total - total // 2


def window_of(call: LiteCall, lengths: FlatShape, sizes: FlatShape) -> SlidingPads:
    """The windows of a node over spatial axes, with what ceil_mode adds after them."""
    rank = len(lengths)
    view = call.view
    strides = view.ints("strides") or (1,) * rank
    dilations = view.ints("dilations") or (1,) * rank
    bare = SlidingPads(lengths, sizes, strides, dilations, (0,) * rank, (0,) * rank)
    before, after = _pads(call, bare)
    return SlidingPads(lengths, sizes, strides, dilations, before, after)


def _pads(call: LiteCall, bare: SlidingPads) -> tuple[FlatShape, FlatShape]:
    mode, rank = call.view.string("auto_pad", "NOTSET"), len(bare.lengths)
    if mode in {"SAME_UPPER", "SAME_LOWER"}:
        pairs = [same_pads(*axis) for axis in zip(*bare.axes, strict=True)]
        if mode == "SAME_LOWER":
            pairs = [(after, before) for before, after in pairs]
        return tuple(pair[0] for pair in pairs), tuple(pair[1] for pair in pairs)
    if mode == "VALID":
        return (0,) * rank, (0,) * rank
    pads = call.view.ints("pads") or (0,) * 2 * rank
    return tuple(pads[:rank]), tuple(pads[rank:])


def ceiled(window: SlidingPads) -> SlidingPads:
    """The windows that `ceil_mode` has: the last one may reach beyond what was added.

    A window that would begin there is left out.
    """
    after = []
    axes = zip(
        window.lengths, window.before, window.after, window.reach, window.strides, strict=True
    )
    for length, begin, end, reach, stride in axes:
        count = math.ceil((length + begin + end - reach) / stride) + 1
        if (count - 1) * stride >= length + begin:
            count -= 1
        after.append(max((count - 1) * stride + reach - length - begin, 0))
    return SlidingPads(
        window.lengths,
        window.sizes,
        window.strides,
        window.dilations,
        window.before,
        tuple(after),
    )
