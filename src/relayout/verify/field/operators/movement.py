"""Operators that move elements by their places."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from relayout.verify.field.call import at_one_type
from relayout.verify.field.values import FieldTensor, UnknownError

if TYPE_CHECKING:
    from relayout.verify.field.call import FieldCall, FieldKernel

OPERANDS_SINCE = {"Slice": 10, "Pad": 11}
PAD_MODES = {"reflect": "reflect", "edge": "edge", "wrap": "wrap"}


def transpose(call: FieldCall) -> FieldTensor:
    tensor = call.tensor(0)
    order = call.attributes.get("perm", range(tensor.data.ndim)[::-1])
    return tensor.with_data(np.ascontiguousarray(np.transpose(tensor.data, list(order))))


def concat(call: FieldCall) -> FieldTensor:
    arrays, kind = at_one_type(call.tensors())
    return kind.with_data(np.concatenate(arrays, call.integer("axis", 1)))


def split(call: FieldCall) -> tuple[FieldTensor, ...]:
    tensor = call.tensor(0)
    axis = call.integer("axis", 0)
    length = tensor.shape[axis]
    if "split" in call.attributes:
        sizes = call.listed("split", ())
    elif call.has(1):
        sizes = call.integers(1)
    else:
        whole = -(-length // call.integer("num_outputs", call.results))
        sizes = [min(whole, length - start) for start in range(0, length, whole)]
    places = np.cumsum(sizes)[:-1]
    return tuple(tensor.with_data(part) for part in np.split(tensor.data, places, axis))


def take_slice(call: FieldCall) -> FieldTensor:
    tensor = call.tensor(0)
    if call.version < OPERANDS_SINCE["Slice"]:
        starts, ends = call.listed("starts", ()), call.listed("ends", ())
        axes, steps = call.attributes.get("axes"), None
    else:
        starts, ends = call.integers(1), call.integers(2)
        axes = call.integers(3) if call.has(3) else None
        steps = call.integers(4) if call.has(4) else None
    chosen = [slice(None)] * tensor.data.ndim
    for i, axis in enumerate(range(len(starts)) if axes is None else axes):
        step = 1 if steps is None else steps[i]
        chosen[axis] = _slice(starts[i], ends[i], step, tensor.shape[axis])
    return tensor.with_data(tensor.data[tuple(chosen)])


def _slice(start: int, end: int, step: int, length: int) -> slice:
    """A slice as the standard clamps it; numpy reads an end of -1 as the last element."""
    start, end = (place + length if place < 0 else place for place in (start, end))
    if step > 0:
        return slice(min(max(start, 0), length), min(max(end, 0), length), step)
    start, end = min(max(start, 0), length - 1), min(max(end, -1), length - 1)
    return slice(start, None if end < 0 else end, step)


def pad(call: FieldCall) -> FieldTensor:
    tensor = call.tensor(0)
    by_operands = call.version >= OPERANDS_SINCE["Pad"]
    pads = call.integers(1) if by_operands else call.listed("pads", call.listed("paddings", ()))
    ndim = tensor.data.ndim
    axes = [axis % ndim for axis in call.integers(3)] if call.has(3) else list(range(ndim))
    widths = [(0, 0)] * ndim
    for i, axis in enumerate(axes):
        widths[axis] = pads[i], pads[i + len(axes)]
    return _padded(call, tensor, widths)


def _padded(call: FieldCall, tensor: FieldTensor, widths: list[tuple[int, int]]) -> FieldTensor:
    cut = tuple(slice(max(-low, 0), -high if high < 0 else None) for low, high in widths)
    grown = [(max(low, 0), max(high, 0)) for low, high in widths]
    mode = call.text("mode", "constant")
    call.context.check([n + a + b for n, (a, b) in zip(tensor.shape, grown, strict=True)])
    if mode in PAD_MODES:
        return tensor.with_data(np.pad(tensor.data[cut], grown, mode=PAD_MODES[mode]))  # type: ignore[call-overload]
    if mode != "constant":
        raise UnknownError(f"mode '{mode}' is not known")
    if call.has(2):
        (data, fill), kind = at_one_type([tensor, call.tensor(2)])
        number = fill.ravel()[0]
    else:
        data, kind = tensor.data, tensor
        number = call.number("value", 0.0) if tensor.is_true else call.encoded("value", 0.0)
    return kind.with_data(np.pad(data[cut], grown, constant_values=number))


def expand(call: FieldCall) -> FieldTensor:
    tensor = call.tensor(0)
    shape = np.broadcast_shapes(tensor.shape, tuple(call.integers(1)))
    call.context.check(shape)
    return tensor.with_data(np.broadcast_to(tensor.data, shape))


def tile(call: FieldCall) -> FieldTensor:
    tensor = call.tensor(0)
    repeats = call.integers(1)
    call.context.check([n * k for n, k in zip(tensor.shape, repeats, strict=True)])
    return tensor.with_data(np.tile(tensor.data, repeats))


def depth_to_space(call: FieldCall) -> FieldTensor:
    tensor = call.tensor(0)
    batch, depth, height, width = tensor.shape
    block = call.integer("blocksize", 1)
    rest = depth // block**2
    if call.text("mode", "DCR") == "DCR":
        apart = tensor.data.reshape(batch, block, block, rest, height, width)
        moved = apart.transpose(0, 3, 4, 1, 5, 2)
    else:
        apart = tensor.data.reshape(batch, rest, block, block, height, width)
        moved = apart.transpose(0, 1, 4, 2, 5, 3)
    return tensor.with_data(moved.reshape(batch, rest, height * block, width * block))


def space_to_depth(call: FieldCall) -> FieldTensor:
    tensor = call.tensor(0)
    batch, depth, height, width = tensor.shape
    block = call.integer("blocksize", 1)
    apart = tensor.data.reshape(batch, depth, height // block, block, width // block, block)
    by_depth = call.text("mode", "DCR") == "DCR"
    moved = apart.transpose((0, 3, 5, 1, 2, 4) if by_depth else (0, 1, 3, 5, 2, 4))
    shape = batch, depth * block**2, height // block, width // block
    return tensor.with_data(moved.reshape(shape))


def reverse_sequence(call: FieldCall) -> FieldTensor:
    """Along the time axis the first elements of each batch entry are reversed."""
    tensor, lengths = call.tensor(0), call.integers(1)
    time, batch = call.integer("time_axis", 0), call.integer("batch_axis", 1)
    moved = np.moveaxis(tensor.data, (batch, time), (0, 1)).copy()
    for entry, length in enumerate(lengths):
        moved[entry, :length] = moved[entry, :length][::-1].copy()
    return tensor.with_data(np.moveaxis(moved, (0, 1), (batch, time)))


def trilu(call: FieldCall) -> FieldTensor:
    tensor = call.tensor(0)
    diagonal = call.integers(1)[0] if call.has(1) else 0
    cut = np.triu if call.integer("upper", 1) else np.tril
    return tensor.with_data(cut(tensor.data, diagonal))


KERNELS: dict[str, FieldKernel] = {
    "Transpose": transpose,
    "Concat": concat,
    "Split": split,
    "Slice": take_slice,
    "Pad": pad,
    "Expand": expand,
    "Tile": tile,
    "DepthToSpace": depth_to_space,
    "SpaceToDepth": space_to_depth,
    "ReverseSequence": reverse_sequence,
    "Trilu": trilu,
}
