"""Operators that take, join or place parts of tensors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from relayout.backends.litert.builder import BOOL, INT32
from relayout.backends.litert.call import LiteCall, LiteLowering
from relayout.backends.litert.collapse import around_axis
from relayout.backends.litert.flat_graph import FlatTensor
from relayout.backends.litert.limits import MOST_AXES_OF_ANY
from relayout.layout.permutation import axis_among


def concat(call: LiteCall) -> FlatTensor:
    parts = [call.tensor(index) for index in range(len(call.operands))]
    kept = [part for part in parts if 0 not in part.shape] or parts[:1]
    return call.build.concat(kept, call.axis(0))


def split(call: LiteCall) -> Sequence[FlatTensor]:
    tensor, axis, count = call.tensor(0), call.axis(0), call.view.results
    sizes = call.numbers("split", 1)
    length = tensor.shape[axis]
    if sizes is None:
        step = -(-length // count)
        sizes = tuple(min(step, length - step * i) for i in range(count))
    if tensor.rank > MOST_AXES_OF_ANY:
        few = call.build.reshape(tensor, around_axis(tensor.shape, axis))
        shapes = [(*tensor.shape[:axis], size, *tensor.shape[axis + 1 :]) for size in sizes]
        parts = _split(call, few, 1, sizes)
        return [call.build.reshape(*pair) for pair in zip(parts, shapes, strict=True)]
    return _split(call, tensor, axis, sizes)


def _split(
    call: LiteCall, tensor: FlatTensor, axis: int, sizes: tuple[int, ...]
) -> list[FlatTensor]:
    build, count = call.build, len(sizes)
    parts = [
        build.tensor(
            (*tensor.shape[:axis], size, *tensor.shape[axis + 1 :]),
            tensor.dtype,
            steps=tensor.steps,
        )
        for size in sizes
    ]
    place = build.constant(axis, INT32)
    if len(set(sizes)) == 1:
        build.put_all("SPLIT", [place, tensor], parts, numSplits=count)
    else:
        lengths = build.constant(sizes, INT32)
        build.put_all("SPLIT_V", [tensor, lengths, place], parts, numSplits=count)
    return parts


def cut(call: LiteCall) -> FlatTensor:
    """A Slice: bounds are brought to what lies inside, as ONNX has it."""
    tensor = call.tensor(0)
    starts, ends = call.numbers("starts", 1), call.numbers("ends", 2)
    if starts is None or ends is None:
        raise call.refusal("its bounds are not given")
    axes = call.numbers("axes", 3) or tuple(range(len(starts)))
    steps = call.numbers("steps", 4) or (1,) * len(starts)
    begins, lengths, strides = [0] * tensor.rank, list(tensor.shape), [1] * tensor.rank
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        place = axis_among(axis, tensor.rank)
        begin, stop, _ = slice(start, _end(end, step), step).indices(tensor.shape[place])
        begins[place], strides[place] = begin, step
        lengths[place] = len(range(begin, stop, step))
    return call.build.strided(tensor, begins, lengths, strides)


def _end(end: int, step: int) -> int | None:
    """Backwards, an end far before the first entry means that entry too."""
    return None if step < 0 and end <= -(2**31) else end


def gather(call: LiteCall) -> FlatTensor:
    tensor, axis = call.tensor(0), call.axis(0)
    indices = in_range(call, call.tensor(1), tensor.shape[axis])
    if indices.data is not None and indices.rank == 0 and tensor.data is None:
        starts = [int(indices.data) if i == axis else 0 for i in range(tensor.rank)]
        lengths = [1 if i == axis else n for i, n in enumerate(tensor.shape)]
        one = call.build.slice(tensor, starts, lengths)
        return call.build.reshape(one, (*tensor.shape[:axis], *tensor.shape[axis + 1 :]))
    return call.build.gather(tensor, indices, axis)


def in_range(call: LiteCall, indices: FlatTensor, length: int) -> FlatTensor:
    """Indices that count from the start: ONNX lets negative ones count from the end."""
    build = call.build
    if indices.data is not None:
        places = np.where(indices.data < 0, indices.data + length, indices.data)
        return build.constant(places.astype(np.int32))
    zero, whole = build.scalar(0, indices), build.scalar(length, indices)
    is_negative = build.broadcasting("LESS", [indices, zero], BOOL)
    shifted = build.broadcasting("ADD", [indices, whole])
    return build.broadcasting("SELECT_V2", [is_negative, shifted, indices])


def gather_elements(call: LiteCall) -> FlatTensor:
    """Each element by its own place along an axis: all its places are written out."""
    tensor, indices, axis = call.tensor(0), call.tensor(1), call.axis(0)
    build = call.build
    along = in_range(call, indices, tensor.shape[axis])
    shape = indices.shape
    grids = np.indices(shape)
    parts = [
        build.reshape(along, (*shape, 1))
        if place == axis
        else build.constant(grids[place][..., None].astype(along.dtype))
        for place in range(tensor.rank)
    ]
    return build.put("GATHER_ND", [tensor, build.concat(parts, len(shape))], shape)


def gather_nd(call: LiteCall) -> FlatTensor:
    tensor, indices = call.tensor(0), call.tensor(1)
    if call.view.integer("batch_dims", 0):
        raise call.refusal("LiteRT's GATHER_ND has no batches")
    depth = indices.shape[-1]
    places = _all_in_range(call, indices, tensor.shape[:depth])
    shape = (*indices.shape[:-1], *tensor.shape[depth:])
    return call.build.put("GATHER_ND", [tensor, places], shape)


def _all_in_range(call: LiteCall, indices: FlatTensor, lengths: Sequence[int]) -> FlatTensor:
    """Indices of several axes, each counted from the start."""
    build = call.build
    if indices.data is not None:
        places = np.where(indices.data < 0, indices.data + np.asarray(lengths), indices.data)
        return build.constant(places.astype(np.int32))
    is_negative = build.broadcasting("LESS", [indices, build.scalar(0, indices)], BOOL)
    shifted = build.broadcasting("ADD", [indices, build.constant(lengths, indices.dtype)])
    return build.broadcasting("SELECT_V2", [is_negative, shifted, indices])


def scatter_nd(call: LiteCall) -> FlatTensor:
    """Updates in their places, and what was there before everywhere else."""
    tensor, indices, updates = (call.tensor(index) for index in range(3))
    if call.view.string("reduction", "none") != "none":
        raise call.refusal("LiteRT has no SCATTER_ND with a reduction")
    build = call.build
    depth = indices.shape[-1]
    places = build.cast(_all_in_range(call, indices, tensor.shape[:depth]), np.int32)
    target = build.constant(tensor.shape, INT32)
    spread = build.put("SCATTER_ND", [places, updates, target], tensor.shape, updates.dtype)
    if places.data is not None:
        mask = np.zeros(tensor.shape, bool)
        mask[tuple(np.moveaxis(places.data, -1, 0))] = True
        if mask.all():
            return spread
        is_new = build.constant(mask)
    else:
        ones = build.constant(np.ones(updates.shape, np.int32))
        marks = build.put("SCATTER_ND", [places, ones, target], tensor.shape, INT32)
        is_new = build.broadcasting("GREATER", [marks, build.scalar(0, marks)], BOOL)
    return build.broadcasting("SELECT_V2", [is_new, spread, tensor], tensor.dtype)


def one_hot(call: LiteCall) -> FlatTensor:
    depth = int(call.constant(1, "depth").reshape(-1)[0])
    values = call.constant(2, "values")
    build = call.build
    indices = build.cast(in_range(call, call.tensor(0), depth), np.int32)
    axis = call.axis(-1, call.tensor(0).rank + 1)
    shape = (*indices.shape[:axis], depth, *indices.shape[axis:])
    on, off = (build.constant(values[index]) for index in (1, 0))
    operands = [indices, build.constant(depth, INT32), on, off]
    is_last = axis == indices.rank
    return build.put("ONE_HOT", operands, shape, values.dtype, axis=-1 if is_last else axis)


def top_k(call: LiteCall) -> Sequence[FlatTensor]:
    """The largest entries of the last axis, in their order; the smallest by their negatives."""
    build, tensor, axis = call.build, call.tensor(0), call.axis(-1)
    count = int((call.numbers("k", 1) or (0,))[0])
    is_least = not call.view.integer("largest", 1)
    order = (*(i for i in range(tensor.rank) if i != axis), axis)
    back = tuple(order.index(i) for i in range(tensor.rank))
    given = build.transpose(tensor, order)
    given = build.unary("NEG", given) if is_least else given
    shape = (*given.shape[:-1], count)
    values, places = build.tensor(shape, given.dtype), build.tensor(shape, INT32)
    build.put_all("TOPK_V2", [given, build.constant(count, INT32)], [values, places])
    values = build.unary("NEG", values) if is_least else values
    return build.transpose(values, back), build.cast(build.transpose(places, back), np.int64)


LOWERINGS: dict[str, LiteLowering] = {
    "Concat": concat,
    "Gather": gather,
    "GatherElements": gather_elements,
    "GatherND": gather_nd,
    "OneHot": one_hot,
    "ScatterND": scatter_nd,
    "Slice": cut,
    "Split": split,
    "TopK": top_k,
}
