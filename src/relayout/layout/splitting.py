"""Axes that a node treats as one, written as the several axes they were merged from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from relayout.layout.blocks import UNIT, Size, Sizes
from relayout.layout.permutation import AxisError
from relayout.layout.strided_axes import StridedAxis, cut_into
from relayout.layout.transport import Changes

Labels: TypeAlias = tuple[int, ...]
"""One number per axis; axes with the same number run over the same index."""

Groups: TypeAlias = Mapping[int, Sizes]
"""The factors, outermost first, that take the place of some axes or labels."""


@dataclass(frozen=True, slots=True)
class Spread:
    """Where axes are after some of them have become several."""

    counts: tuple[int, ...]
    """How many axes each one became."""

    @property
    def rank(self) -> int:
        return len(self.counts)

    def position(self, axis: int) -> int:
        """The first place of what was this axis; a negative axis counts from the end."""
        if not -self.rank <= axis < self.rank:
            raise AxisError(f"there is no axis {axis} among {self.rank}")
        return sum(self.counts[: axis % self.rank])

    def places(self, axis: int) -> range:
        start = self.position(axis)
        return range(start, start + self.counts[axis])


def unchanged(_spread: Spread) -> Changes:
    return Changes()


@dataclass(frozen=True, slots=True)
class AxisMap:
    """Which axes of a node's operands and results belong together.

    The law: if every axis with a label in some groups is split into the factors of that group, and
    the node is renumbered, the results are the given ones with their axes split the same way. A
    unit axis that is broadcast becomes several unit axes.
    """

    operands: tuple[Labels | None, ...]
    """None for an operand that no splitting changes."""
    results: tuple[Labels, ...]
    lead: int = 0
    whole: frozenset[int] = frozenset()
    """The labels of axes that the node cannot do without."""
    renumber: Callable[[Spread], Changes] = unchanged
    """What else is written differently when the axes of the lead operand are spread."""

    def changes(self, groups: Groups) -> Changes:
        labels = self.operands[self.lead] or ()
        counts = (len(groups[label]) if label in groups else 1 for label in labels)
        return self.renumber(Spread(tuple(counts)))

    def splittable(self, labels: Labels, factors: Groups) -> Groups:
        """Of the factors of some axes, by axis, those that the node allows, by label."""
        allowed = {labels[axis]: sizes for axis, sizes in factors.items()}
        return {label: sizes for label, sizes in allowed.items() if label not in self.whole}


def split_sizes(given: Sizes, labels: Labels, groups: Groups) -> Sizes:
    """The lengths of a tensor after its axes have been split."""
    split: list[Size] = []
    for size, label in zip(given, labels, strict=True):
        factors = groups.get(label, (size,))
        split += [UNIT] * len(factors) if size == UNIT else factors
    return tuple(split)


def merged_from(source: Sizes, result: Sizes) -> Groups:
    """The axes of the result of a reshape that several factors of its source went into.

    Factors without a name are left out: elsewhere they could not be distinguished from others.
    """
    pieces = cut_into([StridedAxis(size, UNIT) for size in source if size != UNIT], result)
    if pieces is None:
        return {}
    factors = [tuple(mode.size for mode in piece) for piece in pieces]
    return {
        axis: sizes
        for axis, sizes in enumerate(factors)
        if len(sizes) > 1 and all(map(_is_named, sizes))
    }


def _is_named(size: Size) -> bool:
    return all(kind == "named" for kind, _ in size.symbols)


def labels_aligned(rank: int, wide: int) -> Labels:
    """The labels of an operand that is broadcast to a result of `wide` axes."""
    return tuple(range(wide - rank, wide))


def disagreeing(shapes: Iterable[tuple[Sequence[object], Labels]]) -> frozenset[int]:
    """The labels of axes that several operands have, with lengths not known to be the same.

    An axis of length 1 agrees with any other: it is stretched.
    """
    lengths: dict[int, list[object]] = {}
    for shape, labels in shapes:
        for length, label in zip(shape, labels, strict=True):
            if length != 1:
                lengths.setdefault(label, []).append(length)
    shared = {label: found for label, found in lengths.items() if len(found) > 1}
    return frozenset(
        label for label, found in shared.items() if None in found or len(set(found)) > 1
    )
