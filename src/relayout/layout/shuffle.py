"""Orders of the entries along one axis, as merging reordered axes gives them."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from relayout.layout.permutation import Permutation

Item = TypeVar("Item")
EntryPlaces: TypeAlias = npt.NDArray[np.int64]
"""At each index the index that stands there: a permutation of all of them."""


@dataclass(frozen=True, slots=True)
class Shuffle:
    """All axes as the model describes them, the entries of one of them in another order.

    Along `axis`, stored entry `k` is entry `places[k]` of the tensor that the model describes. No
    Transpose leads from one shuffle to another, or to an order of axes.
    """

    rank: int
    axis: int
    data: bytes

    @classmethod
    def of(cls, rank: int, axis: int, places: EntryPlaces) -> Shuffle | None:
        """None where every entry stands where it stood."""
        if np.array_equal(places, np.arange(len(places))):
            return None
        return cls(rank, axis, places.astype(np.int64).tobytes())

    @property
    def places(self) -> EntryPlaces:
        return np.frombuffer(self.data, np.int64)

    @property
    def is_identity(self) -> bool:
        return False

    def reorder(self, items: Sequence[Item]) -> tuple[Item, ...]:
        """What belongs to axes stays where it is."""
        return tuple(items)

    def __str__(self) -> str:
        return f"{self.axis}~{hashlib.sha256(self.data).hexdigest()[:6]}"


StoredOrder: TypeAlias = Permutation | Shuffle
"""How a tensor may be stored."""


def arranged(places: EntryPlaces, lengths: Sequence[int]) -> Permutation | Shuffle | None:
    """The order of axes of these lengths that has its elements at these places.

    `places` is which element each stored one is; None where no order stores them so.
    """
    if math.prod(lengths) != len(places):
        return None
    if len(lengths) == 1:
        return Shuffle.of(1, 0, places)
    for axis in range(len(lengths)):
        shuffle = _along(places, lengths, axis)
        if shuffle is not None:
            return shuffle
    stands = np.argsort(places)
    steps = [stands[math.prod(lengths[axis + 1 :])] for axis in range(len(lengths))]
    # The further apart two neighbours along an axis stand, the further out it is stored.
    order = Permutation(tuple(sorted(range(len(lengths)), key=lambda axis: -steps[axis])))
    return order if np.array_equal(elements(order, lengths), places) else None


def elements(order: StoredOrder, lengths: Sequence[int]) -> EntryPlaces:
    """Which element stands where, in a tensor of these lengths stored in an order."""
    given = np.arange(math.prod(lengths)).reshape(lengths)
    if isinstance(order, Shuffle):
        return given.take(order.places, order.axis).ravel()
    return given.transpose(order.axes).ravel()


def _along(places: EntryPlaces, lengths: Sequence[int], axis: int) -> Shuffle | None:
    stride = math.prod(lengths[axis + 1 :])
    line = places[: stride * lengths[axis] : stride]
    found = line // stride
    if not np.array_equal(np.sort(found), np.arange(lengths[axis])):
        return None
    shuffle = Shuffle.of(len(lengths), axis, found)
    fits = shuffle is not None and np.array_equal(elements(shuffle, lengths), places)
    return shuffle if fits else None
