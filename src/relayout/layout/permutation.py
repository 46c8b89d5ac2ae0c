"""Orders of axes, with the meaning ONNX gives to `perm`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

Item = TypeVar("Item")


def axis_among(axis: int, rank: int) -> int:
    """An axis counted from the front, of as many as there are."""
    if not -rank <= axis < rank:
        raise AxisError(f"there is no axis {axis} among {rank}")
    return axis % rank


class AxisError(ValueError):
    """A model names an axis that its tensor does not have."""


@dataclass(frozen=True, slots=True)
class Permutation:
    """Stored axis `i` is source axis `axes[i]`, as in `Transpose(x, perm=axes)`.

    A permutation describes an order by what has to be done to get there: a tensor stored in order
    `p` is `Transpose(x, perm=p)` of the tensor that the model describes.
    """

    axes: tuple[int, ...]

    def __post_init__(self) -> None:
        if sorted(self.axes) != list(range(len(self.axes))):
            raise ValueError(f"{list(self.axes)} is not a permutation of its axes")

    @classmethod
    def of(cls, *axes: int) -> Permutation:
        return cls(axes)

    @classmethod
    def identity(cls, rank: int) -> Permutation:
        return _identity(rank)

    @classmethod
    def reversal(cls, rank: int) -> Permutation:
        """What a Transpose without `perm` does."""
        return cls(tuple(reversed(range(rank))))

    @property
    def rank(self) -> int:
        return len(self.axes)

    @property
    def is_identity(self) -> bool:
        return self.axes == tuple(range(len(self.axes)))

    def __getitem__(self, stored: int) -> int:
        return self.axes[stored]

    def __iter__(self) -> Iterator[int]:
        return iter(self.axes)

    def __len__(self) -> int:
        return len(self.axes)

    def __str__(self) -> str:
        return "".join(map(str, self.axes)) if self.rank <= 10 else ",".join(map(str, self.axes))

    def then(self, after: Permutation) -> Permutation:
        """Transpose by this one first, by `after` second."""
        if after.rank != self.rank:
            raise ValueError(f"permutations of rank {self.rank} and {after.rank} do not compose")
        return _composed(self.axes, after.axes)

    def inverse(self) -> Permutation:
        return _inverse(self.axes)

    def position(self, axis: int) -> int:
        """Where a source axis is stored; a negative axis counts from the end."""
        return self.axes.index(axis_among(axis, self.rank))

    def reorder(self, items: Sequence[Item]) -> tuple[Item, ...]:
        """One item per source axis in, one per stored axis out."""
        if len(items) != self.rank:
            raise ValueError(f"{len(items)} items cannot be reordered by rank {self.rank}")
        return tuple(items[axis] for axis in self.axes)

    def drop(self, axes: Collection[int]) -> Permutation:
        """The order of what is left when source `axes` vanish."""
        kept = [axis for axis in range(self.rank) if axis not in axes]
        number = {axis: index for index, axis in enumerate(kept)}
        return Permutation(tuple(number[axis] for axis in self.axes if axis in number))

    def insert(self, positions: Collection[int]) -> Permutation:
        """The order when new axes appear at `positions`, which are the same in both orders.

        `positions` count in the result, whose rank is this rank plus their number.
        """
        rank = self.rank + len(positions)
        others = [axis for axis in range(rank) if axis not in positions]
        axes = list(range(rank))
        for slot, axis in zip(others, self.axes, strict=True):
            axes[slot] = others[axis]
        return Permutation(tuple(axes))

    def replace(self, axis: int, count: int) -> Permutation:
        """The order when source `axis` becomes a run of `count` axes that stay together."""
        shift = count - 1
        axes: list[int] = []
        for source in self.axes:
            if source == axis:
                axes.extend(range(axis, axis + count))
            else:
                axes.append(source + shift if source > axis else source)
        return Permutation(tuple(axes))

    def keeps(self, axes: Collection[int]) -> bool:
        """Whether this set of axes is stored at the same set of positions."""
        return {self.axes[axis_among(axis, self.rank)] for axis in axes} == set(axes)

    def fixes(self, *axes: int) -> bool:
        """Whether each of these axes is stored where it was."""
        return all(self.axes[axis] == axis for axis in axes)

    @property
    def swaps_last_two(self) -> bool:
        """Exactly the last two axes change places: a matrix, or each of a batch, is transposed."""
        if self.rank < 2:
            return False
        first, second = self.rank - 2, self.rank - 1
        return self.axes == (*range(first), second, first)

    def settled(self, shape: Sequence[object]) -> Permutation:
        """The order with the same data in memory in which axes of length 1 stay where they were."""
        if 1 not in shape:
            return self
        moving = iter([axis for axis in self.axes if shape[axis] != 1])
        axes = tuple([axis if shape[axis] == 1 else next(moving) for axis in range(self.rank)])
        return self if axes == self.axes else Permutation(axes)

    def moves_only_unit_axes(self, shape: Sequence[object]) -> bool:
        """Whether no data moves, because every axis that changes its rank order has length 1.

        An unknown or symbolic length counts as more than 1.
        """
        kept = [axis for axis in self.axes if shape[axis] != 1]
        return kept == sorted(kept)


@lru_cache(maxsize=64)
def _identity(rank: int) -> Permutation:
    return Permutation(tuple(range(rank)))


@lru_cache(maxsize=4096)
def _composed(first: tuple[int, ...], second: tuple[int, ...]) -> Permutation:
    return Permutation(tuple([first[axis] for axis in second]))


@lru_cache(maxsize=4096)
def _inverse(axes: tuple[int, ...]) -> Permutation:
    return Permutation(tuple(sorted(range(len(axes)), key=axes.__getitem__)))
