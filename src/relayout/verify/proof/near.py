"""Constants that are the same but for rounding: folded by one model, computed by the other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np

from relayout.verify.pools import Pools
from relayout.verify.proof.canonical import Canonical

Array = np.ndarray[Any, Any]

# The largest difference relative to an element's scale (`verify/pools.py`), by bytes a number.
TOLERANCES = {2: 4e-3, 4: 1e-5, 8: 1e-5}
# Sums of many numbers may differ by more than each of them; this only says what is worth a look.
ROUGHLY = 1e-3
# Orders of axes of the same lengths that are tried.
TRIED = 24


@dataclass(frozen=True, eq=False)
class _MetConstant:
    """A constant met before, and what it adds up to."""

    one: Canonical
    array: Array

    @cached_property
    def total(self) -> float:
        return float(_magnitudes(self.array).sum())

    @cached_property
    def profiles(self) -> list[Array]:
        """By axis, what the magnitudes add up to at each place along it."""
        magnitudes, axes = _magnitudes(self.array), range(self.array.ndim)
        return [magnitudes.sum(axis=tuple(i for i in axes if i != axis)) for axis in axes]


@dataclass
class NearConstants:
    """Constants met so far, by lengths."""

    known: dict[Any, list[_MetConstant]] = field(default_factory=dict)
    error: float = 0.0
    """The largest difference that was taken for rounding."""

    def nearest(self, one: Canonical, array: Array) -> Canonical:
        """The constant, as one met before that differs by rounding alone, if there is such."""
        if array.dtype.kind != "f" or array.dtype.itemsize not in TOLERANCES or not array.size:
            return one
        others = self.known.setdefault(tuple(sorted(one.shape)), [])
        if any(o.one.content == one.content and o.one.shape == one.shape for o in others):
            return one
        new = _MetConstant(one, array)
        for other in others:
            if not _alike(np.array(other.total), np.array(new.total)):
                continue
            for order in islice(_orders(other, new, ()), TRIED):
                error = _error(other.array.transpose(order), array)
                if error <= _tolerance(other.array, array):
                    self.error = max(self.error, error)
                    places = tuple(None if p is None else order[p] for p in one.places)
                    return replace(other.one, places=places)
        others.append(new)
        return one


def _orders(
    other: _MetConstant, new: _MetConstant, begun: tuple[int, ...]
) -> Iterator[tuple[int, ...]]:
    """Orders of the other's axes in which they may be those of the new one."""
    if len(begun) == new.array.ndim:
        yield begun
        return
    place = len(begun)
    for axis in range(other.array.ndim):
        if axis in begun or other.one.shape[axis] != new.one.shape[place]:
            continue
        if _alike(other.profiles[axis], new.profiles[place]):
            yield from _orders(other, new, (*begun, axis))


def _alike(one: Array, other: Array) -> bool:
    return bool(np.allclose(one, other, rtol=ROUGHLY, atol=ROUGHLY * float(np.max(one))))


def _tolerance(*arrays: Array) -> float:
    return max(TOLERANCES[array.dtype.itemsize] for array in arrays)


def _magnitudes(array: Array) -> Array:
    numbers = array.astype(np.float64)
    return np.where(np.isfinite(numbers), np.abs(numbers), 0.0)


def _error(numbers: Array, array: Array) -> float:
    """The largest difference, relative to the scale of its element."""
    finite = np.isfinite(numbers)
    if not np.array_equal(numbers[~finite], array[~finite], equal_nan=True):
        return float("inf")
    numbers, array = (np.where(finite, one, one.dtype.type(0)) for one in (numbers, array))
    apart, largest = (
        np.abs(numbers.astype(np.float64) - array),
        np.max(np.abs(numbers), initial=0.0),
    )
    if not largest or not np.max(apart, initial=0.0) <= _tolerance(numbers, array) * largest:
        return float("inf")  # zeros of another sign are no rounding
    return float(np.max(apart / Pools.of(numbers).scale(numbers), initial=0.0))
