"""Which axes a reshape joins and splits, and so which orders pass through it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from itertools import accumulate, pairwise
from math import prod
from operator import mul
from typing import TYPE_CHECKING, TypeAlias

from relayout.layout.permutation import Permutation

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Symbol: TypeAlias = tuple[str, str]
"""A kind and a name: equal symbols are equal lengths."""

COPY, REST = 0, -1
"""The two entries of a target shape that are not lengths."""

INVENTED = "unk__"
"""How names begin that are in no model: onnx's inference makes them up, and so do we."""

_TIMES = "·"
"""What separates the factors in the name of a length that is a product."""


@dataclass(frozen=True, slots=True)
class Size:
    """A number of elements, as a product of a number and of symbols."""

    number: int = 1
    symbols: tuple[Symbol, ...] = ()

    def __mul__(self, other: Size) -> Size:
        symbols = self.symbols + other.symbols
        return Size(self.number * other.number, tuple(sorted(symbols)) if symbols else ())

    def over(self, other: Size) -> Size | None:
        """The quotient, or None where it is not known."""
        if other.number == 0 or self.number % other.number:
            return None
        left = list(self.symbols)
        for symbol in other.symbols:
            if symbol not in left:
                return None
            left.remove(symbol)
        return Size(self.number // other.number, tuple(sorted(left)))


Sizes: TypeAlias = tuple[Size, ...]

UNIT = Size()


def product(sizes: Sequence[Size]) -> Size:
    symbols = [symbol for size in sizes for symbol in size.symbols]
    number = prod([size.number for size in sizes])
    return Size(number, tuple(sorted(symbols))) if symbols else Size(number)


def sizes_of(shape: Sequence[int | str | None], side: str) -> tuple[Size, ...]:
    """The lengths of a shape; an unknown one is a symbol of its own, named by side and axis."""
    return _sizes(tuple(shape), side)


@lru_cache(maxsize=4096)
def _sizes(shape: tuple[int | str | None, ...], side: str) -> Sizes:
    return tuple(
        size_of(dim) if dim or isinstance(dim, int) else Size(1, ((side, str(axis)),))
        for axis, dim in enumerate(shape)
    )


def size_of(length: int | str) -> Size:
    """A number, a symbol, or the product that `length_of` made a name for."""
    if isinstance(length, int):
        return Size(length)
    number, *names = length.removeprefix(INVENTED).split(_TIMES)
    if not length.startswith(INVENTED) or not names or not number.isdecimal():
        return Size(1, (("named", length),))
    return Size(int(number), tuple(sorted(("named", name) for name in names)))


def length_of(size: Size) -> int | str | None:
    """A length as a shape can state it; None where a symbol in it has no name."""
    if not size.symbols:
        return size.number
    names = [name for kind, name in size.symbols if kind == "named" and _TIMES not in name]
    if len(names) < len(size.symbols):
        return None
    if size.number == 1 and len(names) == 1:
        return names[0]
    return INVENTED + _TIMES.join([str(size.number), *names])


def is_invented(length: int | str | None) -> bool:
    """Whether a length is neither known nor named by the model."""
    return length is None or (isinstance(length, str) and length.startswith(INVENTED))


@dataclass(frozen=True, slots=True)
class Block:
    """A run of source axes that holds the same elements as a run of result axes."""

    source: tuple[int, ...]
    result: tuple[int, ...]
    is_unit: bool = False
    """Whether its axes have length 1, so that they may lie anywhere."""

    def reversed(self) -> Block:
        return Block(self.result, self.source, self.is_unit)


@dataclass(frozen=True, slots=True)
class Length:
    """A number times the lengths of stored axes, which are known at run time."""

    number: int
    axes: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Reshaping:
    """A reshape, by the lengths before and after it; none of them is the number 0."""

    source: tuple[Size, ...]
    result: tuple[Size, ...]
    nonzero: frozenset[Symbol] = field(default=frozenset())
    """Symbols that cannot be 0, because the reshape divides by them."""

    @staticmethod
    def to_target(source: tuple[Size, ...], target: Sequence[int]) -> Reshaping:
        """What a target shape asks for: 0 copies a length, one -1 is what remains."""
        return _to_target(source, tuple(target))

    @property
    def blocks(self) -> tuple[Block, ...]:
        """The smallest blocks."""
        return _blocks(self.source, self.result)

    @property
    def mirrored_blocks(self) -> tuple[Block, ...]:
        """The same blocks, seen from the result."""
        return _mirrored_blocks(self.source, self.result)

    def carry(self, order: Permutation) -> Permutation | Block:
        """The order of the result of a source stored in `order`, or the block this tears apart."""
        return _carry(self.blocks, order)

    def pull(self, wanted: Permutation) -> Permutation | Block:
        """The order of the source that `carry` takes to `wanted`, but for axes of length 1.

        A block that `wanted` tears apart is given instead.
        """
        order = _carry(self.mirrored_blocks, wanted)
        return order.reversed() if isinstance(order, Block) else order

    def target(self, order: Permutation, result_order: Permutation) -> tuple[int, ...] | None:
        """The target shape between these orders; None where no target shape can state it."""
        given = order.reorder(self.source)
        asked = result_order.reorder(self.result)
        entries = tuple(
            _entry(size, given[place] if place < len(given) else None)
            for place, size in enumerate(asked)
        )
        copied = [size for size, entry in zip(asked, entries, strict=True) if entry == COPY]
        if entries.count(REST) > 1:
            return None
        # A length that turns out to be 0 at run time leaves -1 without a meaning.
        if REST in entries and not self.nonzero.issuperset(product(copied).symbols):
            return None
        return entries

    def lengths(self, order: Permutation, result_order: Permutation) -> tuple[Length, ...] | None:
        """The target shape between these orders, read off the source; None where it is not there.

        Each length is that of one stored axis, or of the axes that a reshape joins to one.
        """
        given = order.reorder(self.source)
        joined = {block.result[0]: block.source for block in self.blocks if len(block.result) == 1}
        found: list[Length] = []
        for axis in result_order:
            size = self.result[axis]
            if not size.symbols:
                found.append(Length(size.number))
            elif size in given:
                found.append(Length(1, (given.index(size),)))
            elif joined.get(axis):
                found.append(Length(1, tuple(order.position(source) for source in joined[axis])))
            else:
                return None
        return tuple(found)

    @property
    def open_symbols(self) -> frozenset[Symbol]:
        """Symbols that may be 0."""
        return frozenset(product(self.source).symbols) - self.nonzero


@lru_cache(maxsize=4096)
def _to_target(source: Sizes, target: tuple[int, ...]) -> Reshaping:
    asked = [source[axis] if entry == COPY else Size(entry) for axis, entry in enumerate(target)]
    if REST not in target:
        return Reshaping(source, tuple(asked))
    axis = target.index(REST)
    others = product([*asked[:axis], *asked[axis + 1 :]])
    unknown = Size(1, (("result", str(axis)),))
    asked[axis] = product(source).over(others) or unknown
    return Reshaping(source, tuple(asked), frozenset(others.symbols))


@lru_cache(maxsize=4096)
def _blocks(source: Sizes, result: Sizes) -> tuple[Block, ...]:
    before = [axis for axis, size in enumerate(source) if size != UNIT]
    after = [axis for axis, size in enumerate(result) if size != UNIT]
    cuts = _cuts([source[axis] for axis in before], [result[axis] for axis in after])
    wide = (Block(tuple(before[i:k]), tuple(after[j:m])) for (i, j), (k, m) in pairwise(cuts))
    return (*wide, *_units(source, result))


@lru_cache(maxsize=4096)
def _mirrored_blocks(source: Sizes, result: Sizes) -> tuple[Block, ...]:
    return tuple(block.reversed() for block in _blocks(source, result))


def _entry(size: Size, given: Size | None) -> int:
    if not size.symbols:
        return size.number
    return COPY if size == given else REST


def _cuts(source: Sequence[Size], result: Sequence[Size]) -> list[tuple[int, int]]:
    """The places, as numbers of axes before them, between which the same elements lie.

    Places are found from the front and then, after the last of them, from the back. Both sides
    hold the same elements in all, so what remains between two places is equal as well.
    """
    front = [(0, 0), *_equal_prefixes(source, result)]
    i, j = front[-1]
    back = _equal_prefixes(source[i:][::-1], result[j:][::-1])
    ends = [(len(source) - k, len(result) - m) for k, m in reversed(back)]
    return list(dict.fromkeys([*front, *ends, (len(source), len(result))]))


def _equal_prefixes(source: Sequence[Size], result: Sequence[Size]) -> list[tuple[int, int]]:
    places = {size: place for place, size in enumerate(accumulate(result, mul), 1)}
    return [
        (place, places[size])
        for place, size in enumerate(accumulate(source, mul), 1)
        if size in places
    ]


def _units(source: Sequence[Size], result: Sequence[Size]) -> Iterator[Block]:
    """Axes of length 1: in pairs where both sides have one at the same place, else alone."""
    waiting: dict[Size, list[int]] = {}
    for axis in _unit_axes(source):
        waiting.setdefault(product(source[:axis]), []).append(axis)
    for axis in _unit_axes(result):
        partners = waiting.get(product(result[:axis]))
        yield Block((partners.pop(0),) if partners else (), (axis,), is_unit=True)
    for axes in waiting.values():
        yield from (Block((axis,), (), is_unit=True) for axis in axes)


def _unit_axes(sizes: Sequence[Size]) -> list[int]:
    return [axis for axis, size in enumerate(sizes) if size == UNIT]


def _carry(blocks: Sequence[Block], order: Permutation) -> Permutation | Block:
    block_of = {axis: block for block in blocks for axis in block.source}
    stored = [axis for axis in order if not block_of[axis].is_unit]
    for block in blocks:
        if not block.is_unit and not _is_run(block.source, stored):
            return block
    met = dict.fromkeys(block_of[axis] for axis in order)
    axes = [axis for block in met for axis in block.result]
    for axis in sorted(axis for block in blocks if not block.source for axis in block.result):
        axes.insert(axes.index(axis - 1) + 1 if axis else 0, axis)
    return Permutation(tuple(axes))


def _is_run(axes: tuple[int, ...], stored: list[int]) -> bool:
    """Whether these axes are stored next to each other and in their order."""
    if not axes:
        return True
    start = stored.index(axes[0])
    return tuple(stored[start : start + len(axes)]) == axes
