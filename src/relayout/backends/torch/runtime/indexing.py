"""Picking elements the way ONNX does: indices may be negative, ties go to the first."""

from __future__ import annotations

import math
from typing import Any

import torch


def wrapped(indices: Any, length: int) -> Any:
    """Indices from the end become indices from the start."""
    indices = indices.to(torch.int64)
    return torch.where(indices < 0, indices + length, indices)


def gather(x: Any, indices: Any, axis: int) -> Any:
    return x[(slice(None),) * (axis % x.dim()) + (indices,)]


def gather_elements(x: Any, indices: Any, axis: int) -> Any:
    places = wrapped(indices, x.shape[axis])
    # Torch gathers no unsigned numbers but bytes; their bits are those of signed ones.
    signed = {torch.uint16: torch.int16, torch.uint32: torch.int32, torch.uint64: torch.int64}
    kind = signed.get(x.dtype, x.dtype)
    return torch.gather(x.view(kind), axis, places).view(x.dtype)


def gather_nd(x: Any, indices: Any, batch_dims: int) -> Any:
    batch = x.shape[:batch_dims]
    flat = x.reshape(math.prod(batch), *x.shape[batch_dims:])
    count = math.prod(indices.shape[batch_dims:-1])
    rows = indices.reshape(math.prod(batch), count, indices.shape[-1])
    first = torch.arange(rows.shape[0], device=x.device).unsqueeze(1)
    picked = flat[(first, *rows.unbind(-1))]
    return picked.reshape(*indices.shape[:-1], *picked.shape[2:])


def scatter_elements(x: Any, indices: Any, updates: Any, axis: int, reduction: str) -> Any:
    indices = wrapped(indices, x.shape[axis])
    if reduction == "none":
        return x.scatter(axis, indices, updates)
    names = {"add": "sum", "mul": "prod", "max": "amax", "min": "amin"}
    return x.scatter_reduce(axis, indices, updates, names[reduction], include_self=True)


def scatter_nd(x: Any, indices: Any, updates: Any, reduction: str) -> Any:
    """The leading axes that the indices speak of are one axis, and so are the rest."""
    depth = indices.shape[-1]
    lead, rest = x.shape[:depth], x.shape[depth:]
    rows = torch.zeros(indices.shape[:-1], dtype=torch.int64, device=x.device)
    for axis, length in enumerate(lead):
        rows = rows * length + wrapped(indices[..., axis], length)
    flat = x.reshape(math.prod(lead), math.prod(rest))
    picked = rows.reshape(-1, 1).expand(-1, flat.shape[1])
    values = updates.reshape(picked.shape)
    return scatter_elements(flat, picked, values, 0, reduction).reshape(x.shape)


def slice_by(x: Any, starts: Any, ends: Any, axes: Any, steps: Any) -> Any:
    """A slice whose bounds only the run tells, or that goes backwards."""
    axes = range(len(starts)) if axes is None else axes
    steps = [1] * len(starts) if steps is None else steps
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        if step > 0:
            picked = (slice(None),) * (axis % x.dim()) + (slice(start, end, step),)
            x = x[picked]
            continue
        rows = range(x.shape[axis])[slice(start, None if end < -x.shape[axis] else end, step)]
        x = x.index_select(axis, torch.tensor(list(rows), dtype=torch.int64, device=x.device))
    return x


def split_evenly(x: Any, count: int, axis: int) -> Any:
    """The parts are as long as the first, but for the last, which may have no element."""
    length = -(-x.shape[axis] // count)
    others = [length] * (count - 1)
    return x.split([*others, x.shape[axis] - sum(others)], axis)


def top_k(x: Any, count: int, axis: int, largest: bool) -> Any:
    """Of equal elements the first ones are taken."""
    values, indices = torch.sort(x, dim=axis, descending=largest, stable=True)
    return values.narrow(axis, 0, count), indices.narrow(axis, 0, count)


def one_hot(indices: Any, depth: int, values: Any, axis: int) -> Any:
    rows = indices.to(torch.int64).unsqueeze(axis)
    rank = rows.dim()
    shape = [1] * rank
    shape[axis % rank] = int(depth)
    places = torch.arange(int(depth), device=rows.device).reshape(shape)
    return torch.where(wrapped(rows, int(depth)) == places, values[1], values[0])


def compress(x: Any, condition: Any, axis: int | None) -> Any:
    if axis is None:
        x, axis = x.reshape(-1), 0
    within = condition[: x.shape[axis]]
    return x.index_select(axis, torch.nonzero(within).reshape(-1))


def reverse_sequence(x: Any, lengths: Any, batch_axis: int, time_axis: int) -> Any:
    steps = torch.arange(x.shape[time_axis], device=x.device)
    lengths = lengths.unsqueeze(1)
    rows = torch.where(steps < lengths, lengths - 1 - steps, steps)
    shape = [1] * x.dim()
    shape[batch_axis], shape[time_axis] = rows.shape
    rows = rows if batch_axis < time_axis else rows.t()
    return torch.gather(x, time_axis, rows.reshape(shape).expand(x.shape))


def unique(x: Any, axis: int | None, is_sorted: bool) -> Any:
    """The different elements, where each is first, which each element is, and how often it is."""
    if axis is None:
        x, axis = x.reshape(-1), 0
    found, inverse, counts = torch.unique(x, dim=axis, return_inverse=True, return_counts=True)
    places = torch.arange(inverse.numel(), device=x.device)
    first = torch.full_like(counts, inverse.numel()).scatter_reduce(0, inverse, places, "amin")
    if is_sorted:
        return found, first, inverse, counts
    order = torch.argsort(first)
    place = torch.empty_like(order).scatter(0, order, torch.arange(order.numel(), device=x.device))
    return found.index_select(axis, order), first[order], place[inverse], counts[order]


def tensor_scatter(past: Any, update: Any, rows: Any, axis: int, is_circular: bool) -> Any:
    """A cache with new entries, for each batch from a row of its own."""
    steps = torch.arange(update.shape[axis], device=past.device)
    if rows is None:
        rows = torch.zeros(past.shape[0], dtype=torch.int64, device=past.device)
    places = rows.unsqueeze(1) + steps
    places = places % past.shape[axis] if is_circular else places
    shape = [1] * past.dim()
    shape[0], shape[axis] = places.shape
    return past.scatter(axis, places.reshape(shape).expand(update.shape), update)
