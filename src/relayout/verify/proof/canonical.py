"""A constant in the form in which it is compared, whatever the order of its axes."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby, permutations
from typing import Any

import numpy as np

from relayout.verify.proof.bits import as_bits
from relayout.verify.proof.contents import Contents, Make
from relayout.verify.proof.cores import on_cores
from relayout.verify.proof.parts import Array, blocks, compact, row_parts

# Orders of axes that no signature tells apart and that are all tried.
TRIED_ORDERS = 24


@dataclass(frozen=True)
class Canonical:
    """A constant in the one order of axes in which it is compared.

    `content` is a number that only arrays of the same bits share. `places` tells, by axis as given,
    which axis it is here; None if nothing changes along it.
    """

    dtype: str
    shape: tuple[int, ...]
    content: int
    places: tuple[int | None, ...]


def canonical(contents: Contents, make: Make) -> Canonical:
    """An array whatever the order of its axes; along some it may not change."""
    array = make()
    kept = [axis for axis in range(array.ndim) if not is_uniform(array, axis)]
    places: list[int | None] = [None] * array.ndim
    once = tuple(slice(None) if axis in kept else 0 for axis in range(array.ndim))
    order = _canonical_order(array[once])
    for place, axis in enumerate(order):
        places[kept[axis]] = place
    array = array[once].transpose(order)
    content = contents.number_of(array, lambda: make()[once].transpose(order))
    return Canonical(str(array.dtype), array.shape, content, tuple(places))


def is_uniform(array: Array, axis: int) -> bool:
    """Whether the numbers do not change along an axis."""
    if array.shape[axis] == 0 or array.dtype == object:
        return False
    array = np.moveaxis(array, axis, 0)
    first = as_bits(array[:1])
    if not np.array_equal(first, as_bits(array[-1:])):
        return False
    return all(bool(np.all(as_bits(array[part]) == first)) for part in row_parts(array))


def _canonical_order(array: Array) -> tuple[int, ...]:
    """An order of axes that does not depend on the order in which they are given."""
    keys: dict[int, tuple[Any, ...]] = {axis: (n,) for axis, n in enumerate(array.shape)}
    # Few arrays need to be read to tell their axes apart.
    for signatures in (_edges, _signatures):
        ties = [axis for axis, key in keys.items() if list(keys.values()).count(key) > 1]
        found = signatures(array, ties)
        keys = {axis: (*key, found.get(axis, b"")) for axis, key in keys.items()}
    ranked = sorted(range(array.ndim), key=keys.__getitem__)
    groups = [list(group) for _, group in groupby(ranked, key=keys.__getitem__)]
    orders: list[tuple[int, ...]] = [()]
    for group in groups:
        orders = [(*order, *part) for order in orders for part in permutations(group)]
        if len(orders) > TRIED_ORDERS:
            return tuple(ranked)
    return (
        min(orders, key=lambda order: _digest(array.transpose(order))) if orders[1:] else orders[0]
    )


def _edges(array: Array, axes: Iterable[int]) -> dict[int, bytes]:
    """By axis, a digest of what lies along it at the first place of all others."""
    if array.dtype == object or not array.size:
        return {}
    lines = {axis: np.moveaxis(array, axis, -1)[(0,) * (array.ndim - 1)] for axis in axes}
    return {axis: hashlib.sha256(line.tobytes()).digest() for axis, line in lines.items()}


def _signatures(array: Array, axes: Iterable[int]) -> dict[int, bytes]:
    """By axis, a digest of what lies at each place along it, whatever the order of the others."""
    axes = list(axes)
    if not axes or array.dtype == object or not array.size:
        return {}
    others = {axis: tuple(i for i in range(array.ndim) if i != axis) for axis in axes}

    def added(part: slice) -> dict[int, Array]:
        bits = as_bits(compact(array[part]))
        return {axis: bits.sum(axis=others[axis], dtype=np.uint64) for axis in axes}

    sums = {axis: np.zeros(array.shape[axis], np.uint64) for axis in axes}
    parts = row_parts(array)
    for part, found in zip(parts, on_cores(added, parts), strict=True):
        for axis, total in sums.items():
            place = part if axis == 0 else slice(None)
            total[place] += found[axis]
    return {axis: hashlib.sha256(one.tobytes()).digest() for axis, one in sums.items()}


def _digest(array: Array) -> bytes:
    hashed = hashlib.sha256()
    if array.dtype == object:
        hashed.update(repr(array.tolist()).encode())
        return hashed.digest()
    for block in blocks(array):
        hashed.update(compact(block).reshape(-1).view(np.uint8).data)
    return hashed.digest()
