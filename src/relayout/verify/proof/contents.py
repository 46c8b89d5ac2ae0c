"""Arrays by what they hold: the same number for the same bits, found by comparing them all."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

# Elements that are looked at to find arrays that may be the same.
LOOKED_AT = 64


@dataclass
class Contents:
    """Vectors met so far, by type, length and a few of their elements."""

    known: dict[Hashable, list[tuple[int, Array]]] = field(default_factory=dict)
    count: int = 0

    def number_of(self, flat: Array) -> int:
        """A number that only vectors of the same bits share."""
        met = self.known.setdefault(_glance(flat), [])
        for number, other in met:
            if same_bits(flat, other):
                return number
        self.count += 1
        met.append((self.count, flat))
        return self.count


def _glance(flat: Array) -> Hashable:
    some = flat[:: max(1, flat.size // LOOKED_AT)]
    shown = repr(some.tolist()) if flat.dtype == object else some.tobytes()
    return str(flat.dtype), flat.size, shown


def same_bits(one: Array, other: Array) -> bool:
    return bool(np.array_equal(as_bits(one), as_bits(other)))


def as_bits(array: Array) -> Array:
    width = array.dtype.itemsize
    if width in (1, 2, 4, 8) and array.dtype != object:
        return np.ascontiguousarray(array).view(f"u{width}")
    return array
