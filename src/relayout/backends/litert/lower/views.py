"""Operators that only change how elements are arranged or repeated."""

from __future__ import annotations

import math

import numpy as np

from relayout.backends.litert.builder import BOOL
from relayout.backends.litert.call import LiteCall, LiteLowering
from relayout.backends.litert.flat_graph import FlatTensor
from relayout.layout.permutation import axis_among


def reshape(call: LiteCall) -> FlatTensor:
    """A target may copy a length by 0 and leave one open by -1."""
    tensor = call.tensor(0)
    target = list(call.numbers("shape", 1) or ())
    if not call.view.integer("allowzero", 0):
        target = [tensor.shape[axis] if n == 0 else n for axis, n in enumerate(target)]
    if -1 in target:
        rest = math.prod(n for n in target if n != -1)
        target[target.index(-1)] = math.prod(tensor.shape) // rest if rest else 0
    return call.build.reshape(tensor, target)


def flatten(call: LiteCall) -> FlatTensor:
    tensor = call.tensor(0)
    axis = call.view.integer("axis", 1)
    axis = axis + tensor.rank if axis < 0 else axis
    rows = math.prod(tensor.shape[:axis])
    return call.build.reshape(tensor, (rows, math.prod(tensor.shape[axis:])))


def squeeze(call: LiteCall) -> FlatTensor:
    tensor, axes = call.tensor(0), call.numbers("axes", 1)
    if axes is None:
        gone = {axis for axis, length in enumerate(tensor.shape) if length == 1}
    else:
        gone = {axis_among(axis, tensor.rank) for axis in axes}
    return call.build.reshape(tensor, [n for i, n in enumerate(tensor.shape) if i not in gone])


def unsqueeze(call: LiteCall) -> FlatTensor:
    tensor, axes = call.tensor(0), call.numbers("axes", 1) or ()
    rank = tensor.rank + len(axes)
    new = {axis_among(axis, rank) for axis in axes}
    rest = iter(tensor.shape)
    return call.build.reshape(tensor, [1 if axis in new else next(rest) for axis in range(rank)])


def transpose(call: LiteCall) -> FlatTensor:
    tensor = call.tensor(0)
    perm = call.view.ints("perm") or tuple(reversed(range(tensor.rank)))
    return call.build.transpose(tensor, perm)


def expand(call: LiteCall) -> FlatTensor:
    shape = tuple(map(int, call.constant(1, "shape")))
    return call.build.expand(call.tensor(0), shape)


def tile(call: LiteCall) -> FlatTensor:
    tensor = call.tensor(0)
    repeats = [int(n) for n in call.constant(1, "repeats")]
    shape = tuple(n * times for n, times in zip(tensor.shape, repeats, strict=True))
    if shape == tensor.shape:
        return tensor
    return call.build.put("TILE", [tensor, call.build.constant(repeats, np.int32)], shape)


def identity(call: LiteCall) -> FlatTensor:
    if any(call.view.uses_result(index) for index in range(1, call.view.results)):
        raise call.refusal("its mask is read")
    return call.tensor(0)


def shape(call: LiteCall) -> FlatTensor:
    lengths = call.tensor(0).shape
    start, end = call.view.integer("start", 0), call.view.integer("end", len(lengths))
    return call.build.constant(lengths[start:end], np.int64)


def size(call: LiteCall) -> FlatTensor:
    return call.build.constant(math.prod(call.tensor(0).shape), np.int64)


def depth_to_space(call: LiteCall, tensor: FlatTensor) -> FlatTensor:
    """LiteRT takes channels as blocks first; other ones are put in that order."""
    block = call.view.integer("blocksize", 1)
    batch, height, width, channels = tensor.shape
    if call.view.string("mode", "DCR") == "CRD":
        places = np.arange(channels).reshape(-1, block, block).transpose(1, 2, 0).reshape(-1)
        tensor = call.build.places(tensor, places, 3)
    result = (batch, height * block, width * block, channels // block**2)
    return call.build.put("DEPTH_TO_SPACE", [tensor], result, blockSize=block)


def space_to_depth(call: LiteCall, tensor: FlatTensor) -> FlatTensor:
    block = call.view.integer("blocksize", 1)
    batch, height, width, channels = tensor.shape
    result = (batch, height // block, width // block, channels * block**2)
    return call.build.put("SPACE_TO_DEPTH", [tensor], result, blockSize=block)


def trilu(call: LiteCall) -> FlatTensor:
    """A triangle of a matrix, by a mask that is known."""
    tensor = call.tensor(0)
    offset = int(call.constant(1, "k").reshape(-1)[0]) if call.has(1) else 0
    whole = np.ones(tensor.shape[-2:], bool)
    is_upper = call.view.integer("upper", 1)
    mask = np.triu(whole, offset) if is_upper else np.tril(whole, offset)
    operands = [call.build.constant(mask, BOOL), tensor, call.build.scalar(0, tensor)]
    return call.build.broadcasting("SELECT_V2", operands, tensor.dtype)


LOWERINGS: dict[str, LiteLowering] = {
    "Dropout": identity,
    "Expand": expand,
    "Flatten": flatten,
    "Identity": identity,
    "Reshape": reshape,
    "Shape": shape,
    "Size": size,
    "Squeeze": squeeze,
    "Tile": tile,
    "Transpose": transpose,
    "Trilu": trilu,
    "Unsqueeze": unsqueeze,
}
