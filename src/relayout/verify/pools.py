"""Which elements of a result are alike: what is known of some of them holds for the others.

One number cannot stand for a whole result: a mask of -1e9 beside probabilities, or one channel that
is a million times as large as the others, would hide every error in the rest. So elements share
their scale, and how much rounding changes them, with those in the same slice along each axis
and with those of about the same magnitude; what counts is the least of these.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

FEWEST = 16
"""The elements that a slice must have to stand for each of them."""
GAP = 10
"""Magnitudes with this many empty octaves between them are not alike."""
TAIL = 1e-12
"""Less than this beside larger numbers is the tail of an exponential, and judged as being this."""


@dataclass(frozen=True)
class Pools:
    """The clusters of magnitudes of a result, by element, and the axes whose slices are large."""

    clusters: Array
    axes: tuple[int, ...]

    @classmethod
    def of(cls, result: Array) -> Pools:
        magnitudes = np.where(np.isfinite(result), np.abs(result), 0.0)
        sizes = [result.size // max(length, 1) for length in result.shape]
        axes = [axis for axis, size in enumerate(sizes) if size >= FEWEST]
        lengths = result.shape
        return cls(_clusters(magnitudes), tuple(axis for axis in axes if lengths[axis] > 1))

    def scale(self, result: Array) -> Array:
        """By element, the magnitude that its error is relative to."""
        magnitudes = np.where(np.isfinite(result), np.abs(result), 0.0)
        found = self._of_clusters(magnitudes)
        for axis in self.axes:
            largest = _of_slices(magnitudes, axis)
            # A slice of zeros shows no scale.
            found = np.where(largest > 0, np.minimum(found, largest), found)
        floor = min(TAIL, float(magnitudes.max(initial=0.0)))
        return np.where(found > 0, np.maximum(found, floor), 1.0)

    def around(self, result: Array) -> Array:
        """By element, the magnitude of what it may be a small difference of."""
        magnitudes = np.where(np.isfinite(result), np.abs(result), 0.0)
        found = np.full(result.shape, magnitudes.max(initial=0.0))
        for axis in self.axes:
            found = np.minimum(found, _of_slices(magnitudes, axis))
        return found

    def shared(self, noise: Array) -> Array:
        """By element, how much rounding changes those that are like it."""
        found = self._of_clusters(noise)
        for axis in self.axes:
            found = np.minimum(found, _of_slices(noise, axis))
        return found

    def _of_clusters(self, values: Array) -> Array:
        found = np.zeros(values.shape)
        for cluster in range(int(self.clusters.max(initial=0)) + 1):
            members = self.clusters == cluster
            found[members] = values[members].max(initial=0.0)
        return found


def _of_slices(values: Array, axis: int) -> Array:
    others = tuple(other for other in range(values.ndim) if other != axis)
    return np.asarray(values.max(axis=others, keepdims=True))


def _clusters(magnitudes: Array) -> Array:
    """The number of the cluster of each magnitude; zeros are in the one of the least."""
    octaves = np.frexp(magnitudes)[1]
    nonzero = magnitudes > 0
    if not nonzero.any():
        return np.zeros(magnitudes.shape, np.int64)
    least, most = int(octaves[nonzero].min()), int(octaves[nonzero].max())
    octaves = np.where(nonzero, octaves, least) - least
    seen = np.flatnonzero(np.bincount(octaves.ravel(), minlength=most - least + 1))
    number = np.zeros(most - least + 1, np.int64)
    number[seen] = np.concatenate([[0], np.cumsum(np.diff(seen) > GAP)])
    return np.asarray(number[octaves])
