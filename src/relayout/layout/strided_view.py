"""Chains of operators that only give the same elements another shape or order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from operator import mul
from typing import TypeAlias

from relayout.layout.blocks import UNIT, Size, Sizes, product
from relayout.layout.permutation import Permutation
from relayout.layout.strided_axes import StridedAxis, cut_into, in_source_order, joined

Link: TypeAlias = Sizes | Permutation
"""A Reshape, by the shape it gives, or a Transpose, by its order."""


@dataclass(frozen=True, slots=True)
class View:
    """What a chain does to a tensor of shape `source`: unique, so equal chains are equal views.

    A Reshape changes only the shape that is written over the elements. A Transpose cuts the axes
    at the borders it moves, by divisibility alone, so what holds does so for every length.
    """

    source: Sizes
    modes: tuple[StridedAxis, ...]
    """How the flat index of the result steps through the source, outermost first."""
    shape: Sizes

    @classmethod
    def of(cls, shape: Sizes) -> View:
        """The tensor as it is."""
        whole = StridedAxis(product(shape), UNIT)
        return cls(shape, () if whole.size.number == 0 else joined([whole]), shape)

    @classmethod
    def along(cls, source: Sizes, links: Iterable[Link]) -> View | None:
        """The single view that a chain is equal to, if there is one."""
        return cls.of(source).followed_by(links)

    def followed_by(self, links: Iterable[Link]) -> View | None:
        view: View | None = self
        for link in links:
            view = None if view is None else view.then(link)
        return view

    def then(self, link: Link) -> View | None:
        """The longer chain; None where it is not a single view, or not known to be one."""
        if isinstance(link, Permutation):
            return self._transposed(link)
        if not same_elements(link, self.shape):
            raise ValueError(f"a reshape from {self.shape} to {link} loses or makes elements")
        return replace(self, shape=link)

    def _transposed(self, order: Permutation) -> View | None:
        shape = order.reorder(self.shape)
        if product(shape).number == 0:
            return replace(self, shape=shape)
        runs = _runs(axis for axis in order if self.shape[axis] != UNIT)
        given = sorted(runs)
        pieces = cut_into(
            self.modes, [product([self.shape[axis] for axis in run]) for run in given]
        )
        if pieces is None:
            return None
        piece_of = dict(zip(given, pieces, strict=True))
        modes = joined(mode for run in runs for mode in piece_of[run])
        return replace(self, modes=modes, shape=shape)

    def after(self, first: View) -> View | None:
        """One view for the two, this one second."""
        return first.followed_by(self.emissions[0])

    @property
    def moves(self) -> bool:
        """Whether elements change places."""
        return list(self.modes) != in_source_order(self.modes)

    def inverse(self) -> View:
        """The view that takes the result back to the source."""
        sizes = [mode.size for mode in self.modes]
        strides = _strides(sizes)
        back = {
            mode: StridedAxis(mode.size, stride)
            for mode, stride in zip(self.modes, strides, strict=True)
        }
        return View(
            self.shape, tuple(back[mode] for mode in in_source_order(self.modes)), self.source
        )

    @property
    def emissions(self) -> list[tuple[Link, ...]]:
        """Chains that do the same with at most one Transpose, the shortest first."""
        if not self.moves:
            return [_without_idle(self.source, [self.shape])]
        chains = [self._through(self._named_modes())]
        if (back := self.inverse().order_of_source()) is not None:
            chains.insert(0, [back.reorder(self.shape), back.inverse()])
        if (order := self.order_of_source()) is not None:
            chains.insert(0, [order, self.shape])
        return sorted((_without_idle(self.source, chain) for chain in chains), key=len)

    def order_of_source(self) -> Permutation | None:
        """The order in which whole axes of the source lie in the result; None if they do not."""
        place: dict[int, int] = {}
        for axis, (size, stride) in enumerate(zip(self.source, _strides(self.source), strict=True)):
            if size == UNIT:
                continue
            homes = [
                at for at, mode in enumerate(self.modes) if mode.contains(StridedAxis(size, stride))
            ]
            if not homes:
                return None
            place[axis] = homes[0]
        order = self._with_unit_axes(sorted(place, key=lambda axis: (place[axis], axis)))
        view = View.of(self.source).then(order)
        return order if view is not None and view.modes == self.modes else None

    def _with_unit_axes(self, wide: Sequence[int]) -> Permutation:
        """These axes, and those of length 1 where the result has them, or else where they were."""
        lengths = [self.source[axis] for axis in wide]
        fits = len(self.shape) == len(self.source) and lengths == [
            size for size in self.shape if size != UNIT
        ]
        waiting = iter(wide)
        units = iter([axis for axis, size in enumerate(self.source) if size == UNIT])
        return Permutation(
            tuple(
                next(units) if size == UNIT else next(waiting)
                for size in (self.shape if fits else self.source)
            )
        )

    def _through(self, modes: Sequence[StridedAxis]) -> list[Link]:
        given = in_source_order(modes)
        order = Permutation(tuple(given.index(mode) for mode in modes))
        return [tuple(mode.size for mode in given), order, self.shape]

    def _named_modes(self) -> list[StridedAxis]:
        """The axes, those with symbols cut where source or result have borders within them.

        So a length known only at run time stays one that can be copied, where that is possible.
        """
        strides = _strides([mode.size for mode in self.modes])
        return [
            part
            for mode, stride in zip(self.modes, strides, strict=True)
            for part in self._at_borders(mode, stride)
        ]

    def _at_borders(self, mode: StridedAxis, stride: Size) -> list[StridedAxis]:
        if not mode.size.symbols:
            return [mode]
        borders = [border.over(mode.stride) for border in _strides(self.source)]
        borders += [border.over(stride) for border in _strides(self.shape)]
        parts = [mode]
        for inner in sorted((b for b in borders if b is not None), key=_magnitude, reverse=True):
            outer = parts[-1].size.over(inner)
            if outer is not None and UNIT not in {outer, inner}:
                parts[-1:] = parts[-1].cut(outer) or [parts[-1]]
        return parts


def composed(source: Sizes, links: Iterable[Link]) -> list[View]:
    """The fewest views found for a chain: one unless a border falls between divisors."""
    views = [View.of(source)]
    for link in links:
        longer = views[-1].then(link)
        if longer is None:
            views.append(_alone(views[-1].shape, link))
        else:
            views[-1] = longer
        while len(views) > 1 and (one := views[-1].after(views[-2])) is not None:
            views[-2:] = [one]
    return views


def _alone(shape: Sizes, link: Link) -> View:
    view = View.of(shape).then(link)
    if view is None:
        raise ValueError(f"{link} does not fit the shape {shape}")
    return view


def same_elements(one: Sizes, other: Sizes) -> bool:
    """Whether two shapes hold equally many elements, whatever the lengths."""
    first, second = product(one), product(other)
    return first == second or first.number == second.number == 0


def _without_idle(source: Sizes, links: Sequence[Link]) -> tuple[Link, ...]:
    """The chain without Reshapes to the shape that is there already."""
    kept: list[Link] = []
    shape = source
    for link in links:
        if isinstance(link, Permutation):
            shape = link.reorder(shape)
        elif link == shape:
            continue
        else:
            shape = link
        kept.append(link)
    return tuple(kept)


def _runs(axes: Iterable[int]) -> list[tuple[int, ...]]:
    """Axes that stay neighbours in their order, taken together."""
    moved = list(axes)
    number = {axis: index for index, axis in enumerate(sorted(moved))}
    runs: list[tuple[int, ...]] = []
    for axis in moved:
        if runs and number[axis] == number[runs[-1][-1]] + 1:
            runs[-1] += (axis,)
        else:
            runs.append((axis,))
    return runs


def _strides(sizes: Sequence[Size]) -> list[Size]:
    """How many elements one step along each axis passes."""
    inner = list(accumulate(reversed(sizes), mul, initial=UNIT))
    return inner[-2::-1] if sizes else []


def _magnitude(size: Size) -> tuple[int, int]:
    return size.number, len(size.symbols)
