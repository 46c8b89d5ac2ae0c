"""What a Transpose has to do in memory, whatever its axes are called."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from math import prod

from relayout.layout.move_class import MoveClass, move_class
from relayout.layout.permutation import Permutation


@dataclass(frozen=True, slots=True)
class Move:
    """A Transpose without axes of length 1, with axes that stay side by side taken as one."""

    lengths: tuple[int, ...]
    order: Permutation
    is_hindered: bool = False
    """Whether the axes of length 1 make it look as if elements moved one by one, which they do not.

    A kernel that does not drop these axes then takes no short cut."""

    @classmethod
    def of(cls, lengths: Sequence[int], order: Permutation) -> Move:
        """The move of a tensor of some lengths by a permutation."""
        return _merged(tuple(lengths), order.axes)

    @property
    def elements(self) -> int:
        return prod(self.lengths)

    @property
    def run(self) -> int:
        """How many elements stay side by side."""
        if not self.lengths:
            return 1
        last = len(self.lengths) - 1
        return self.lengths[last] if self.order[last] == last else 1

    @property
    def kind(self) -> MoveClass:
        return _kind(self.order.axes)

    @property
    def bare(self) -> Move:
        """The same on a tensor without axes of length 1."""
        return Move(self.lengths, self.order)

    def first_steps(self) -> list[Permutation]:
        """The other moves of one of these axes, each of which a second move can complete."""
        rank = len(self.lengths)
        steps = dict.fromkeys(
            Permutation(_with_axis_moved(rank, axis, place))
            for axis in range(rank)
            for place in range(rank)
            if axis != place
        )
        return [step for step in steps if step != self.order]

    def halves(self, step: Permutation) -> tuple[Move, Move]:
        """The move as two, of which this is the first."""
        rest = step.inverse().then(self.order)
        return Move.of(self.lengths, step), Move.of(step.reorder(self.lengths), rest)


@lru_cache(maxsize=4096)
def _kind(axes: tuple[int, ...]) -> MoveClass:
    return move_class(axes, (0,) * len(axes))


def _with_axis_moved(rank: int, axis: int, place: int) -> tuple[int, ...]:
    others = [each for each in range(rank) if each != axis]
    return (*others[:place], axis, *others[place:])


@lru_cache(maxsize=65536)
def _merged(lengths: tuple[int, ...], axes: tuple[int, ...]) -> Move:
    stored = [axis for axis in axes if lengths[axis] != 1]
    follows = _followers(lengths)
    groups: list[list[int]] = []
    for axis in stored:
        if groups and follows.get(groups[-1][-1]) == axis:
            groups[-1].append(axis)
        else:
            groups.append([axis])
    given = sorted(groups)
    order = tuple(given.index(group) for group in groups)
    merged = tuple(prod(lengths[axis] for axis in group) for group in given)
    is_scattered = _kind(order) is MoveClass.SCATTER or len(order) <= 1
    is_hindered = not is_scattered and _kind_with_units(lengths, axes) is MoveClass.SCATTER
    return Move(merged, Permutation(order), is_hindered)


def _kind_with_units(lengths: tuple[int, ...], axes: tuple[int, ...]) -> MoveClass:
    """The class of a move whose axes of length 1 count, but for those that stay innermost."""
    kept = len(axes)
    while kept and axes[kept - 1] == kept - 1 and lengths[kept - 1] == 1:
        kept -= 1
    return _kind(axes[:kept])


def _followers(lengths: Sequence[int]) -> dict[int, int]:
    """By axis, the next one that is longer than 1."""
    long = [axis for axis, length in enumerate(lengths) if length != 1]
    return dict(pairwise(long))
