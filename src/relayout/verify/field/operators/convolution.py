"""Convolutions, with weights outputs first (inputs first if transposed)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import onnx

from relayout.verify.field.operators.windows import Windows, windows_of
from relayout.verify.field.residues import added, multiplied, reduced, subtracted
from relayout.verify.field.values import residue_tensor

if TYPE_CHECKING:
    from relayout.verify.field.call import FieldCall, FieldKernel
    from relayout.verify.field.residues import Residues
    from relayout.verify.field.values import FieldTensor

# Elements of windows laid side by side at once, to bound memory.
COLUMNS_AT_ONCE = 1 << 19


def conv(call: FieldCall) -> FieldTensor:
    result = convolved(call, call.residues(0), call.residues(1))
    if call.has(2):
        result = added(result, per_channel(call.residues(2), result.ndim))
    return call.like(result)


def per_channel(numbers: Residues, rank: int) -> Residues:
    """One number a channel, against a tensor with channels along axis 1."""
    return numbers.reshape(-1, *[1] * (rank - 2)) if numbers.size > 1 else numbers.reshape(())


def convolved(call: FieldCall, numbers: Residues, weight: Residues) -> Residues:
    groups = call.integer("group", 1)
    if numbers.shape[1] != weight.shape[1] * groups:
        raise ValueError(f"{numbers.shape[1]} channels for a weight of {weight.shape[1]}")
    windows = windows_of(call, numbers.shape[2:], weight.shape[2:])
    padded = windows.padded(numbers)
    if weight.shape[1] == 1 and groups > 1:
        call.context.multiply(math.prod((numbers.shape[0], *windows.counts, *weight.shape)))
        return _depthwise(padded, weight, windows)
    return _grouped(call, padded, weight, windows)


def _depthwise(padded: Residues, weight: Residues, windows: Windows) -> Residues:
    """Each output channel reads one input channel."""
    if weight.shape[0] != padded.shape[1]:
        padded = np.repeat(padded, weight.shape[0] // padded.shape[1], 1)
    shape = padded.shape[0], weight.shape[0], *windows.counts
    total = np.zeros(shape, np.int64)
    for offset in windows.offsets():
        factor = per_channel(_at(weight[:, 0], offset), len(shape))
        total += multiplied(windows.at(padded, offset), factor)
    return reduced(total)


def _at(weight: Residues, offset: tuple[int, ...]) -> Residues:
    """What all output channels have at one place of the kernel."""
    return np.asarray(weight.reshape(weight.shape[0], -1)[:, _flat(weight.shape[1:], offset)])


def _flat(shape: tuple[int, ...], offset: tuple[int, ...]) -> int:
    return int(np.ravel_multi_index(offset, shape))


def _grouped(call: FieldCall, padded: Residues, weight: Residues, windows: Windows) -> Residues:
    """One product of matrices a group, for some rows of windows at a time."""
    groups = call.integer("group", 1)
    outputs, inputs, *kernel = weight.shape
    batch, *counts = padded.shape[0], *windows.counts
    size = inputs * math.prod(kernel)
    matrix = weight.reshape(groups, outputs // groups, size)
    parts = []
    row = batch * max(groups * size, outputs) * math.prod(counts[1:])
    step = max(COLUMNS_AT_ONCE // max(row, 1), 1)
    for start in range(0, counts[0], step):
        taken = [
            windows.at(padded, offset)[:, :, start : start + step] for offset in windows.offsets()
        ]
        some = taken[0].shape[2:]
        stacked = np.stack(taken, 2)
        columns = stacked.reshape(batch, groups, size, math.prod(some))
        result = call.product(matrix, columns)
        parts.append(result.reshape(batch, outputs, *some))
    return np.concatenate(parts, 2)


def conv_transpose(call: FieldCall) -> FieldTensor:
    """Every element adds its multiple of the kernel to the result."""
    numbers, weight = call.residues(0), call.residues(1)
    groups = call.integer("group", 1)
    batch, channels, *lengths = numbers.shape
    inputs, outputs, *kernel = weight.shape
    if inputs != channels:
        raise ValueError(f"{channels} channels for a weight of {inputs}")
    strides = call.listed("strides", [1] * len(kernel))
    dilations = call.listed("dilations", [1] * len(kernel))
    size = outputs * math.prod(kernel)
    matrix = weight.reshape(groups, inputs // groups, size).transpose(0, 2, 1)
    flat = numbers.reshape(batch, groups, channels // groups, math.prod(lengths))
    spread = call.product(matrix, flat).reshape(batch, groups * outputs, *kernel, *lengths)
    extents = [
        (n - 1) * s + (k - 1) * d + 1
        for n, s, k, d in zip(lengths, strides, kernel, dilations, strict=True)
    ]
    before, shape = _cut(call, lengths, extents)
    room = [max(e, b + n) for e, b, n in zip(extents, before, shape, strict=True)]
    total = np.zeros((batch, groups * outputs, *room), np.int64)
    for offset in np.ndindex(*kernel):
        places = tuple(
            slice(o * d, o * d + (n - 1) * s + 1, s)
            for o, d, n, s in zip(offset, dilations, lengths, strides, strict=True)
        )
        whole = slice(None), slice(None)
        total[(*whole, *places)] += spread[(*whole, *offset)]
    cut = tuple(slice(b, b + n) for b, n in zip(before, shape, strict=True))
    result = reduced(total[(slice(None), slice(None), *cut)])
    if call.has(2):
        result = added(result, per_channel(call.residues(2), result.ndim))
    return call.like(result)


def _cut(call: FieldCall, lengths: list[int], extents: list[int]) -> tuple[list[int], list[int]]:
    """What is left out at the beginning of each axis, and the lengths that are kept."""
    rank = len(lengths)
    strides = call.listed("strides", [1] * rank)
    extra = call.listed("output_padding", [0] * rank)
    auto = call.text("auto_pad", "NOTSET")
    grown = [extent + more for extent, more in zip(extents, extra, strict=True)]
    if "output_shape" in call.attributes:
        shape = call.listed("output_shape", ())[-rank:]
    elif auto.startswith("SAME"):
        shape = [length * stride for length, stride in zip(lengths, strides, strict=True)]
    else:
        pads = call.listed("pads", [0] * (2 * rank)) if auto == "NOTSET" else [0] * (2 * rank)
        before, after = pads[:rank], pads[rank:]
        return before, [g - b - a for g, b, a in zip(grown, before, after, strict=True)]
    total = [max(g - n, 0) for g, n in zip(grown, shape, strict=True)]
    smaller = auto == "SAME_UPPER"
    return [each // 2 if smaller else each - each // 2 for each in total], shape


def conv_integer(call: FieldCall) -> FieldTensor:
    numbers, weight = call.residues(0), call.residues(1)
    if call.has(2):
        numbers = subtracted(numbers, call.residues(2))
    if call.has(3):
        zero = call.residues(3)
        weight = subtracted(weight, zero.reshape(-1, *[1] * (weight.ndim - 1)))
    return residue_tensor(convolved(call, numbers, weight), onnx.TensorProto.INT32)


KERNELS: dict[str, FieldKernel] = {
    "Conv": conv,
    "ConvTranspose": conv_transpose,
    "ConvInteger": conv_integer,
}
