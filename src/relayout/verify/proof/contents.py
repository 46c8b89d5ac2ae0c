"""Arrays by what they hold: the same number for the same bits, found by comparing them all."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from relayout.verify.proof.bits import same_bits
from relayout.verify.proof.parts import Array

Make: TypeAlias = Callable[[], Array]

# Elements that are looked at to find arrays that may be the same.
LOOKED_AT = 64


@dataclass
class Contents:
    """Arrays met so far, by type, lengths and a few of their elements."""

    known: dict[Hashable, list[tuple[int, Make]]] = field(default_factory=dict)
    count: int = 0

    def number_of(self, array: Array, make: Make | None = None) -> int:
        """A number that only arrays of the same lengths and bits share.

        An array that can be made again need not be kept.
        """
        met = self.known.setdefault(_glance(array), [])
        for number, other in met:
            if same_bits(array, other()):
                return number
        self.count += 1
        met.append((self.count, make or (lambda: array)))
        return self.count


def _glance(array: Array) -> Hashable:
    some = array
    if array.size > LOOKED_AT:
        places = np.arange(0, array.size, array.size // LOOKED_AT)
        some = array[np.unravel_index(places, array.shape)]
    shown = repr(some.tolist()) if array.dtype == object else some.tobytes()
    return str(array.dtype), array.shape, shown
