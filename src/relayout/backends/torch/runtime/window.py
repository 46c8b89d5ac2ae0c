"""Padding of sliding windows, and sums over them that torch's own pools cannot do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.nn import functional as F


def same_pads(
    lengths: Sequence[int],
    kernel: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    upper: bool,
) -> tuple[int, ...]:
    """The padding with which there are as many windows as strides fit into a length."""
    before, behind = [], []
    for length, size, stride, dilation in zip(lengths, kernel, strides, dilations, strict=True):
        windows = -(-length // stride)
        total = max(0, (windows - 1) * stride + (size - 1) * dilation + 1 - length)
        less, more = total // 2, total - total // 2
        before.append(less if upper else more)
        behind.append(more if upper else less)
    return (*before, *behind)


def pad_same(
    x: Any,
    kernel: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    upper: bool,
    value: float,
) -> Any:
    pads = same_pads(x.shape[2:], kernel, strides, dilations, upper)
    rank = len(kernel)
    sides = [pads[axis + side] for axis in reversed(range(rank)) for side in (0, rank)]
    return F.pad(x, sides, value=value)


def window_counts(
    lengths: Sequence[int],
    kernel: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    pads: Sequence[int],
    ceil: bool,
) -> list[int]:
    """How many windows fit along each axis; with `ceil` a last one may end outside."""
    rank, counts = len(kernel), []
    for axis, length in enumerate(lengths):
        span = (kernel[axis] - 1) * dilations[axis] + 1
        room = length + pads[axis] + pads[rank + axis] - span
        count = (-(-room // strides[axis]) if ceil else room // strides[axis]) + 1
        if ceil and (count - 1) * strides[axis] >= length + pads[axis]:
            count -= 1
        counts.append(max(count, 0))
    return counts


def has_windows(x: Any, *options: Any) -> bool:
    """Whether there are channels, and a window fits along every axis.

    The options are those of `window_counts`. Torch takes no channels for no batch.
    """
    return bool(x.shape[1]) and all(window_counts(x.shape[2:], *options))


def no_windows(x: Any, *options: Any) -> Any:
    """The result, without elements, of a pool for which an axis is too short."""
    return x.new_empty((*x.shape[:2], *window_counts(x.shape[2:], *options)))


def ceil_pads(
    x: Any,
    kernel: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    pads: Sequence[int],
) -> list[int]:
    """Padding that makes room for a last window that starts inside but ends outside."""
    rank = len(kernel)
    more = list(pads)
    counts = window_counts(x.shape[2:], kernel, strides, dilations, pads, True)
    for axis, count in enumerate(counts):
        span = (kernel[axis] - 1) * dilations[axis] + 1
        more[rank + axis] = (count - 1) * strides[axis] + span - x.shape[2 + axis] - pads[axis]
    return more


def window_sum(
    x: Any, kernel: Sequence[int], strides: Sequence[int], dilations: Sequence[int]
) -> Any:
    """The sum over each window of an already padded tensor."""
    rank = len(kernel)
    n, c = x.shape[:2]
    ones = torch.ones((1, 1, *kernel), dtype=x.dtype, device=x.device)
    convolve = (F.conv1d, F.conv2d, F.conv3d)[rank - 1]
    sums = convolve(x.reshape(n * c, 1, *x.shape[2:]), ones, stride=strides, dilation=dilations)
    return sums.reshape(n, c, *sums.shape[2:])


def sides_of(pads: Sequence[int]) -> list[int]:
    """ONNX's padding in torch's order."""
    rank = len(pads) // 2
    return [pads[axis + side] for axis in reversed(range(rank)) for side in (0, rank)]


def average_pool(
    x: Any,
    kernel: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    pads: Sequence[int],
    ceil: bool,
    counts_padding: bool,
) -> Any:
    """The mean over each window; beyond the padding nothing counts."""
    if not has_windows(x, kernel, strides, dilations, pads, ceil):
        return no_windows(x, kernel, strides, dilations, pads, ceil)
    reach = ceil_pads(x, kernel, strides, dilations, pads) if ceil else list(pads)
    ones = torch.ones_like(x[:1, :1])
    if counts_padding:
        ones = F.pad(ones, sides_of(pads), value=1.0)
        rest = [0] * len(kernel) + [more - less for more, less in zip(reach, pads, strict=True)][
            len(kernel) :
        ]
        ones = F.pad(ones, sides_of(rest))
    else:
        ones = F.pad(ones, sides_of(reach))
    total = window_sum(F.pad(x, sides_of(reach)), kernel, strides, dilations)
    return total / window_sum(ones, kernel, strides, dilations)


def lp_pool(
    x: Any,
    kernel: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    pads: Sequence[int],
    ceil: bool,
    p: int,
) -> Any:
    if not has_windows(x, kernel, strides, dilations, pads, ceil):
        return no_windows(x, kernel, strides, dilations, pads, ceil)
    reach = ceil_pads(x, kernel, strides, dilations, pads) if ceil else list(pads)
    powers = F.pad(x.abs() ** p, sides_of(reach))
    return window_sum(powers, kernel, strides, dilations) ** (1 / p)


def max_pool(
    x: Any,
    kernel: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    pads: Sequence[int],
    ceil: bool,
) -> Any:
    """Any padding; torch's own pools take the same before and behind, up to half a kernel."""
    if not has_windows(x, kernel, strides, dilations, pads, ceil):
        return no_windows(x, kernel, strides, dilations, pads, ceil)
    reach = ceil_pads(x, kernel, strides, dilations, pads) if ceil else list(pads)
    wide = x if x.is_floating_point() else x.to(torch.float64)
    wide = F.pad(wide, sides_of(reach), value=float("-inf"))
    pool = (F.max_pool1d, F.max_pool2d, F.max_pool3d)[len(kernel) - 1]
    return pool(wide, kernel, stride=strides, dilation=dilations).to(x.dtype)


def max_pool_indices(
    x: Any,
    kernel: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    pads: Sequence[int],
    ceil: bool,
    by_column: bool,
) -> Any:
    """The largest of each window, and where it stands in the whole tensor."""
    if not has_windows(x, kernel, strides, dilations, pads, ceil):
        nothing = no_windows(x, kernel, strides, dilations, pads, ceil)
        return nothing, nothing.to(torch.int64)
    rank, shape = len(kernel), x.shape
    reach = ceil_pads(x, kernel, strides, dilations, pads) if ceil else list(pads)
    wide = x if x.is_floating_point() else x.to(torch.float64)
    wide = F.pad(wide, sides_of(reach), value=float("-inf"))
    pool = (F.max_pool1d, F.max_pool2d, F.max_pool3d)[rank - 1]
    values, places = pool(wide, kernel, stride=strides, dilation=dilations, return_indices=True)
    steps: list[Any] = []
    for axis in reversed(range(rank)):
        steps.insert(0, places % wide.shape[2 + axis] - pads[axis])
        places = places // wide.shape[2 + axis]
    order = list(reversed(range(rank))) if by_column else list(range(rank))
    flat = torch.arange(shape[0] * shape[1], device=x.device)
    flat = flat.reshape(shape[0], shape[1], *[1] * rank)
    for axis in order:
        flat = flat * shape[2 + axis] + steps[axis]
    return values.to(x.dtype), flat


def max_unpool(x: Any, indices: Any, shape: Sequence[int], wanted: Sequence[int] | None) -> Any:
    """Each element at its place, zeros elsewhere, and more zeros behind if a shape is wanted."""
    flat = torch.zeros(shape, dtype=x.dtype, device=x.device).reshape(-1)
    whole = flat.scatter(0, indices.reshape(-1), x.reshape(-1)).reshape(shape)
    if wanted is None:
        return whole
    more = [want - have for want, have in zip(wanted, shape, strict=True)]
    return F.pad(whole, [side for length in reversed(more) for side in (0, length)])
