"""Convolutions with paddings and outputs that torch's own do not take."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import torch
from torch.nn import functional as F


def conv_of_nothing(x: Any, weight: Any, bias: Any, counts: Sequence[int]) -> Any:
    """A tensor without elements, which torch refuses: all that windows see is padding."""
    result = x.new_zeros((len(x), len(weight), *counts))
    return result if bias is None else result + bias.reshape(-1, *[1] * len(counts))


def conv_transpose_by(
    x: Any,
    weight: Any,
    bias: Any,
    strides: Sequence[int],
    dilations: Sequence[int],
    extra: Sequence[int],
    groups: int,
    pads: Sequence[int],
) -> Any:
    """The whole result, with `extra` behind each axis, and then cut by the padding."""
    rank = len(strides)
    convolve = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)[rank - 1]
    result = convolve(x, weight, None, stride=strides, dilation=dilations, groups=groups)
    result = F.pad(result, [side for more in reversed(extra) for side in (0, more)])
    result = F.pad(
        result, [-pads[axis + side] for axis in reversed(range(rank)) for side in (0, rank)]
    )
    return result if bias is None else result + bias.reshape(-1, *[1] * rank)


def conv_transpose_to(
    x: Any,
    weight: Any,
    bias: Any,
    strides: Sequence[int],
    dilations: Sequence[int],
    extra: Sequence[int],
    groups: int,
    shape: Sequence[int] | None,
    upper: bool,
) -> Any:
    """The padding follows from the lengths that are wanted, strides times as long if none are."""
    before, behind = [], []
    for axis, stride in enumerate(strides):
        length = x.shape[2 + axis]
        wanted = length * stride if shape is None else shape[axis]
        span = (weight.shape[2 + axis] - 1) * dilations[axis] + 1
        total = stride * (length - 1) + extra[axis] + span - wanted
        # What is wanted beyond the whole result is put behind it.
        less = max(0, total) // 2
        more = total - less
        before.append(less if upper or total < 0 else more)
        behind.append(more if upper or total < 0 else less)
    pads = (*before, *behind)
    return conv_transpose_by(x, weight, bias, strides, dilations, extra, groups, pads)


def deform_conv(
    x: Any,
    weight: Any,
    offset: Any,
    bias: Any,
    mask: Any,
    strides: Sequence[int],
    dilations: Sequence[int],
    pads: Sequence[int],
    groups: int,
    offset_groups: int,
) -> Any:
    """Every tap of the kernel reads where its offset says, between pixels if need be."""
    dtype = x.dtype
    # Places between pixels come out exactly only where there are digits to spare.
    x, weight, offset = (t.to(torch.float64) for t in (x, weight, offset))
    n, c, height, width = x.shape
    taps_h, taps_w = weight.shape[2:]
    rows, columns = offset.shape[2:]
    places = offset.reshape(n, offset_groups, taps_h * taps_w, 2, rows, columns)
    top = torch.arange(rows, device=x.device, dtype=x.dtype) * strides[0] - pads[0]
    left = torch.arange(columns, device=x.device, dtype=x.dtype) * strides[1] - pads[1]
    picked = []
    for tap in range(taps_h * taps_w):
        y = places[:, :, tap, 0] + top[:, None] + (tap // taps_w) * dilations[0]
        z = places[:, :, tap, 1] + left + (tap % taps_w) * dilations[1]
        grid = torch.stack([(2 * z + 1) / width - 1, (2 * y + 1) / height - 1], -1)
        grid = grid.reshape(n * offset_groups, rows, columns, 2)
        part = x.reshape(n * offset_groups, c // offset_groups, height, width)
        read = F.grid_sample(part, grid, align_corners=False)
        read = read.reshape(n, offset_groups, c // offset_groups, rows, columns)
        if mask is not None:
            read = (
                read
                * mask.reshape(n, offset_groups, 1, taps_h * taps_w, rows, columns)[:, :, :, tap]
            )
        picked.append(read.reshape(n, groups, c // groups, rows, columns))
    columns_of = torch.stack(picked, 3)
    kernels = weight.reshape(groups, -1, weight.shape[1], taps_h * taps_w)
    result = torch.einsum("ngctyx,goct->ngoyx", columns_of, kernels)
    result = result.reshape(n, weight.shape[0], rows, columns).to(dtype)
    return result if bias is None else result + bias.reshape(-1, 1, 1)


def col2im(
    x: Any,
    image: Sequence[int],
    block: Sequence[int],
    dilations: Sequence[int] | None,
    pads: Sequence[int] | None,
    strides: Sequence[int] | None,
) -> Any:
    """Blocks summed where they overlap, in an image that is cut by its padding."""
    rank = len(block)
    dilations, strides = dilations or [1] * rank, strides or [1] * rank
    pads = pads or [0] * 2 * rank
    lengths = [image[axis] + pads[axis] + pads[rank + axis] for axis in range(rank)]
    counts = [
        (lengths[axis] - dilations[axis] * (block[axis] - 1) - 1) // strides[axis] + 1
        for axis in range(rank)
    ]
    parts = x.reshape(x.shape[0], -1, math.prod(block), *counts)
    result = x.new_zeros(x.shape[0], parts.shape[1], *lengths)
    for index, place in enumerate(itertools.product(*(range(size) for size in block))):
        spots = [
            slice(tap * step, tap * step + stride * (count - 1) + 1, stride)
            for tap, step, stride, count in zip(place, dilations, strides, counts, strict=True)
        ]
        result[(slice(None), slice(None), *spots)] += parts[:, :, index]
    for axis in range(rank):
        result = result.narrow(2 + axis, pads[axis], image[axis])
    return result


def grouped_taps(weight: Any, groups: int, blocks: int) -> Any:
    """Weights as a matrix for each block of groups and each tap, with zeros between its groups."""
    joined, written, read = groups // blocks, weight.shape[0] // groups, weight.shape[1]
    own = weight.reshape(blocks, joined, written, read, -1).permute(1, 0, 4, 3, 2)
    taps = weight.new_zeros(blocks, own.shape[2], joined * read, joined * written)
    for index, matrices in enumerate(own):
        rows, columns = index * read, index * written
        taps[:, :, rows : rows + read, columns : columns + written] = matrices
    return taps
