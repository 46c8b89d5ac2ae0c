"""Constants that are the same but for rounding: folded by one model, computed by the other."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import permutations
from typing import Any

import numpy as np

from relayout.verify.proof.canonical import Canonical

Array = np.ndarray[Any, Any]

# The largest difference, relative to the largest number of a constant.
TOLERANCE = 1e-5
# Orders of axes of the same lengths that are tried.
TRIED = 24


@dataclass
class NearConstants:
    """Constants met so far, by type and lengths."""

    known: dict[Any, list[tuple[Canonical, Array]]] = field(default_factory=dict)
    error: float = 0.0
    """The largest difference that was taken for rounding."""

    def nearest(self, one: Canonical, array: Array) -> Canonical:
        """The constant, as one met before that differs by rounding alone, if there is such."""
        if array.dtype.kind != "f" or not array.size:
            return one
        others = self.known.setdefault((one.dtype, tuple(sorted(one.shape))), [])
        if any(other.digest == one.digest and other.shape == one.shape for other, _ in others):
            return one
        for other, numbers in others:
            for order in _orders(other.shape, one.shape):
                error = _error(numbers.transpose(order), array)
                if error <= TOLERANCE:
                    self.error = max(self.error, error)
                    places = tuple(None if p is None else order[p] for p in one.places)
                    return replace(other, places=places)
        others.append((one, array))
        return one


def _orders(shape: tuple[int, ...], wanted: tuple[int, ...]) -> list[tuple[int, ...]]:
    found = []
    for order in permutations(range(len(shape))):
        if tuple(shape[i] for i in order) == wanted:
            found.append(order)
        if len(found) >= TRIED:
            break
    return found


def _error(numbers: Array, array: Array) -> float:
    largest = float(np.max(np.abs(numbers), initial=0.0))
    apart = np.abs(numbers.astype(np.float64) - array)
    worst = float(np.max(apart, initial=0.0))
    return worst / largest if largest and np.isfinite(worst) else float("inf")
