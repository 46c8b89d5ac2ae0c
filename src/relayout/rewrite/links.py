"""Nodes that only look at the same elements, read as Reshapes and Transposes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from relayout.graph.read import NodeView, Shape, perm_of, shape_of
from relayout.layout.block_move import BLOCK_MOVES, MODES, BlockMove
from relayout.layout.blocks import (
    COPY,
    REST,
    UNIT,
    Reshaping,
    Sizes,
    Symbol,
    length_of,
    product,
    sizes_of,
)
from relayout.layout.strided_view import Link, same_elements
from relayout.ops.named_axes import AXES
from relayout.ops.views import TARGET

RESHAPES = ("Flatten", "Reshape", "Squeeze", "Unsqueeze")
VIEWS = (*RESHAPES, "Identity", "Transpose")


@dataclass(frozen=True, slots=True)
class NodeLinks:
    """What a node does to a tensor of a given shape."""

    links: tuple[Link, ...]
    shape: Sizes
    nonzero: frozenset[Symbol] = field(default=frozenset())
    """Symbols that cannot be 0, because the node divides by them."""


def read_links(view: NodeView, given: Sizes) -> NodeLinks | None:
    """A node as links; None where it is none of these operators or the run decides what it does."""
    if view.unknown_attribute is not None or any(size.number == 0 for size in given):
        return None
    if view.op_type == "Transpose":
        return _transpose(view, given)
    if view.op_type in BLOCK_MOVES:
        return _block_move(view, given)
    reshaping = _RESHAPINGS[view.op_type](view, given)
    if reshaping is None or not same_elements(reshaping.source, reshaping.result):
        return None
    return NodeLinks((reshaping.result,), reshaping.result, reshaping.nonzero)


def _transpose(view: NodeView, given: Sizes) -> NodeLinks | None:
    order = perm_of(view.node)
    if order is None or order.rank != len(given):
        return None
    return NodeLinks((order,), order.reorder(given))


def _identity(_view: NodeView, given: Sizes) -> Reshaping:
    return Reshaping(given, given)


def _flatten(view: NodeView, given: Sizes) -> Reshaping | None:
    axis, rank = view.integer("axis", 1), len(given)
    if not -rank <= axis <= rank:
        return None
    border = axis + rank if axis < 0 else axis
    return Reshaping(given, (product(given[:border]), product(given[border:])))


def _squeeze(view: NodeView, given: Sizes) -> Reshaping | None:
    axes = AXES.read_ints(view)
    if axes is None and not any(size.symbols for size in given):
        axes = tuple(axis for axis, size in enumerate(given) if size == UNIT)
    if not isinstance(axes, tuple):
        return None
    gone = _from_front(axes, len(given))
    kept = tuple(size for axis, size in enumerate(given) if axis not in gone)
    return Reshaping(given, kept) if gone or not axes else None


def _unsqueeze(view: NodeView, given: Sizes) -> Reshaping | None:
    axes = AXES.read_ints(view)
    if not isinstance(axes, tuple):
        return None
    new = _from_front(axes, len(given) + len(axes))
    if len(new) != len(axes):
        return None
    old = iter(given)
    places = range(len(given) + len(axes))
    return Reshaping(given, tuple(UNIT if place in new else next(old) for place in places))


def _from_front(axes: Sequence[int], rank: int) -> set[int]:
    """Axes counted from the front; none where one of them does not exist."""
    if not all(-rank <= axis < rank for axis in axes):
        return set()
    return {axis % rank for axis in axes}


def _reshape(view: NodeView, given: Sizes) -> Reshaping | None:
    target = TARGET.read_ints(view)
    if not isinstance(target, tuple):
        return _inferred(view, given)
    if min(target, default=0) < REST or target.count(REST) > 1:
        return None
    if COPY in target[len(given) :] or (COPY in target and view.integer("allowzero", 0)):
        return None
    return Reshaping.to_target(given, target)


def _inferred(view: NodeView, given: Sizes) -> Reshaping | None:
    """A Reshape to a shape that is computed, where its result is known all the same."""
    shape = shape_of(view.node.outputs[0])
    if shape is None or 0 in shape or not all(shape):
        return None
    return Reshaping(given, sizes_of(shape, "result"))


_Reshaper: TypeAlias = Callable[[NodeView, Sizes], Reshaping | None]

_RESHAPINGS: dict[str, _Reshaper] = {
    "Flatten": _flatten,
    "Identity": _identity,
    "Reshape": _reshape,
    "Squeeze": _squeeze,
    "Unsqueeze": _unsqueeze,
}


def _block_move(view: NodeView, given: Sizes) -> NodeLinks | None:
    block, mode = view.integer("blocksize", 0), view.string("mode", "DCR")
    if block < 1 or mode not in MODES:
        return None
    links = BlockMove(view.op_type, block, mode).links(given)
    if links is None or not isinstance(links[-1], tuple):
        return None
    return NodeLinks(links, links[-1])


def dims_of(sizes: Sizes) -> Shape:
    """Lengths as a shape can name them: numbers, names, and None for all others."""
    return tuple(map(length_of, sizes))
