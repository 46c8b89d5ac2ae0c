"""Where windows of convolutions and pools lie."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from relayout.verify.field.call import FieldCall
    from relayout.verify.inputs import Array


@dataclass(frozen=True, slots=True)
class Windows:
    """Along each spatial axis: lengths of the kernel, steps, padding and the number of windows."""

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]
    counts: tuple[int, ...]

    def padded(self, numbers: Array, fill: int = 0) -> Array:
        """With as much padding as the last windows reach, or cut there."""
        widths = [(0, 0), (0, 0)]
        for axis, length in enumerate(numbers.shape[2:]):
            reach = (self.counts[axis] - 1) * self.strides[axis] + 1
            reach += (self.kernel[axis] - 1) * self.dilations[axis]
            widths.append((self.before[axis], max(reach - self.before[axis] - length, 0)))
        return np.pad(numbers, widths, constant_values=fill)

    def offsets(self) -> Iterator[tuple[int, ...]]:
        """The places within a window."""
        return product(*map(range, self.kernel))

    def at(self, padded: Array, offset: Sequence[int]) -> Array:
        """The elements that all windows have at one place."""
        chosen: list[slice] = [slice(None), slice(None)]
        for axis, place in enumerate(offset):
            start = place * self.dilations[axis]
            stop = start + (self.counts[axis] - 1) * self.strides[axis] + 1
            chosen.append(slice(start, stop, self.strides[axis]))
        return padded[tuple(chosen)]


def windows_of(call: FieldCall, lengths: Sequence[int], kernel: Sequence[int]) -> Windows:
    """The windows that the attributes of a call state for an input of some lengths."""
    ones = [1] * len(kernel)
    strides, dilations = call.listed("strides", ones), call.listed("dilations", ones)
    extents = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    before, after = _pads(call, lengths, extents, strides)
    rounded = math.ceil if call.integer("ceil_mode", 0) else math.floor
    counts = []
    for axis, length in enumerate(lengths):
        room = length + before[axis] + after[axis] - extents[axis]
        count = rounded(room / strides[axis]) + 1
        # A window that would begin in the padding after the input is left out.
        if (count - 1) * strides[axis] >= length + before[axis] and count > 1:
            count -= 1
        if count < 1:
            raise ValueError(f"a window of {extents[axis]} does not fit a length of {length}")
        counts.append(count)
    given = kernel, strides, dilations, before, after, counts
    return Windows(*(tuple(each) for each in given))


def _pads(
    call: FieldCall, lengths: Sequence[int], extents: Sequence[int], strides: Sequence[int]
) -> tuple[list[int], list[int]]:
    auto = call.text("auto_pad", "NOTSET")
    rank = len(lengths)
    if auto == "NOTSET":
        pads = call.listed("pads", [0] * (2 * rank))
        return pads[:rank], pads[rank:]
    if auto == "VALID":
        return [0] * rank, [0] * rank
    total = [
        max((math.ceil(length / stride) - 1) * stride + extent - length, 0)
        for length, extent, stride in zip(lengths, extents, strides, strict=True)
    ]
    small, large = [each // 2 for each in total], [each - each // 2 for each in total]
    return (small, large) if auto == "SAME_UPPER" else (large, small)
