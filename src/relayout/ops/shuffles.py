"""What an operator does where the entries of an axis come in another order.

An operator that treats all entries of an axis alike passes their order on; where it has constants
of its own along that axis, these follow. So an order can end in the rows of a constant weight.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from relayout.graph.read import NodeView
from relayout.layout.shuffle import EntryPlaces, Shuffle, StoredOrder
from relayout.layout.shuffled_views import MOST_ENTRIES
from relayout.layout.splitting import Labels
from relayout.layout.transport import Refusal, Transport
from relayout.ops.named_axes import SCALES_PER_AXIS, SOFTMAX_OF_ONE_AXIS, keeps_axes, reduced_axes

RESULT = -1
"""The port of the first result; the ports of operands are their indexes."""

ShuffleRule: TypeAlias = Callable[[NodeView, Mapping[int, StoredOrder]], Sequence[Transport]]
"""The restatements in which some ports have these orders."""


@dataclass(frozen=True, slots=True)
class ShuffleFacts:
    """How an operator runs where the entries of an axis come in another order."""

    rule: ShuffleRule
    apart: bool = False
    """Whether each operand may come in an order of its own, so that they are combined."""


NO_SHUFFLES = ShuffleFacts(lambda _view, _orders: ())
"""Every entry stays where it is."""

EntryRule: TypeAlias = Callable[[NodeView], "EntryMap | Refusal"]


@dataclass(frozen=True, slots=True)
class EntryMap:
    """Which axes of a node run over the same entries.

    The law: if the entries of every axis with some label come in another order, the results are
    the given ones with the entries of their axes of that label in this order.
    """

    operands: tuple[Labels | None, ...]
    results: tuple[Labels, ...]
    fixed: frozenset[int] = frozenset()
    """The labels of axes whose entries must come as they are."""

    def label(self, port: int, axis: int) -> int | None:
        labels = self.results[0] if port == RESULT else self.operands[port]
        if labels is None or labels[axis] in self.fixed:
            return None
        return labels[axis]


def following(entries: EntryRule) -> ShuffleFacts:
    """Everything that runs over the same entries comes in the same order."""

    def rule(view: NodeView, orders: Mapping[int, StoredOrder]) -> Sequence[Transport]:
        ((port, order),) = orders.items()
        if not isinstance(order, Shuffle):
            return ()
        found = entries(view)
        if isinstance(found, Refusal):
            return ()
        label = found.label(port, order.axis)
        answer = None if label is None else _followed(view, found, label, order.places)
        return () if answer is None else (answer,)

    return ShuffleFacts(rule)


def _followed(view: NodeView, found: EntryMap, label: int, places: EntryPlaces) -> Transport | None:
    inputs: list[StoredOrder | None] = [None] * view.arity
    for index, labels in enumerate(found.operands):
        shape = view.shape(index) if view.has(index) else None
        if labels is None or label not in labels or shape is None:
            continue
        axis = labels.index(label)
        if labels.count(label) > 1 or shape[axis] not in {1, len(places)}:
            return None
        if shape[axis] != 1:
            inputs[index] = Shuffle.of(len(shape), axis, places)
    if not any(inputs):
        return None
    outputs = [_of_result(labels, label, places) for labels in found.results]
    return Transport(tuple(inputs), tuple(outputs))


def _of_result(labels: Labels, label: int, places: EntryPlaces) -> Shuffle | None:
    if label not in labels:
        return None
    return Shuffle.of(len(labels), labels.index(label), places)


# Operators that fix an axis, and yet treat its entries alike


def _axes(view: NodeView) -> Labels:
    return tuple(range(view.rank(0) or 0))


def one_by_one(view: NodeView) -> EntryMap | Refusal:
    """Every element of the first operand is treated by itself."""
    return EntryMap((_axes(view), *(None,) * (view.arity - 1)), (_axes(view),))


def softmax(view: NodeView) -> EntryMap | Refusal:
    """Every entry is divided by the same sum."""
    if view.version < SOFTMAX_OF_ONE_AXIS:
        return Refusal(f"{view.op_type} before opset 13 works on all trailing axes together")
    return EntryMap((_axes(view),), (_axes(view),))


def by_channel(view: NodeView) -> EntryMap | Refusal:
    """Each channel has parameters of its own."""
    if view.results > 1 or view.integer("training_mode", 0):
        return Refusal(f"{view.op_type} also returns its statistics")
    if not view.integer("spatial", 1):
        return Refusal(f"{view.op_type} with spatial=0 has parameters for every place")
    labels = _axes(view)
    return EntryMap((labels, *((1,),) * (view.arity - 1)), (labels,))


def trailing(view: NodeView) -> EntryMap | Refusal:
    """A normalisation over the last axis, whose parameters belong to its entries."""
    labels, axis = _axes(view), view.integer("axis", -1)
    if view.results > 1 or axis not in {-1, len(labels) - 1}:
        return Refusal(f"{view.op_type} normalises several axes, or returns its statistics")
    ranks = [view.rank(index) or 0 for index in range(1, view.arity)]
    return EntryMap((labels, *(labels[len(labels) - rank :] for rank in ranks)), (labels,))


def reduced(view: NodeView) -> EntryMap | Refusal:
    """The entries of a reduced axis may come in any order."""
    labels = _axes(view)
    axes = reduced_axes(view, len(labels))
    if isinstance(axes, Refusal):
        return axes
    if keeps_axes(view):
        kept = tuple(len(labels) + axis if axis in axes else axis for axis in labels)
    else:
        kept = tuple(axis for axis in labels if axis not in axes)
    return EntryMap((labels, *(None,) * (view.arity - 1)), (kept,))


def quantized(view: NodeView) -> EntryMap | Refusal:
    """Scale and zero point belong to the entries of one axis, or to all elements."""
    scale, labels = view.shape(1), _axes(view)
    if scale is None or view.integer("block_size", 0):
        return Refusal(f"the scale of {view.op_type} is unknown or blocked")
    if all(length == 1 for length in scale):
        return EntryMap((labels, *(None,) * (view.arity - 1)), (labels,))
    if view.version < SCALES_PER_AXIS or len(scale) != 1:
        return Refusal(f"{view.op_type} has a scale that does not fit its axis")
    axis = view.integer("axis", 1) % len(labels)
    return EntryMap((labels, *((axis,),) * (view.arity - 1)), (labels,))


ROWS, COLUMNS, SUMMED = -3, -2, -1
"""The labels of the axes of a product; those of its batch are numbered from 0."""


def matmul(view: NodeView) -> EntryMap | Refusal:
    return _product(view, right=1)


def matmul_of_bytes(right: int, single: tuple[int, ...], per_column: tuple[int, ...]) -> EntryRule:
    """Scales and zero points of the right factor may belong to its columns."""

    def rule(view: NodeView) -> EntryMap | Refusal:
        if not all(view.is_one_number(index) for index in single):
            return Refusal(f"{view.op_type} has a scale or a zero point that is not one number")
        if any((view.rank(index) or 0) > 1 for index in per_column):
            return Refusal(f"{view.op_type} has scales or zero points for each matrix")
        return _product(view, right, per_column)

    return rule


def _product(view: NodeView, right: int, per_column: tuple[int, ...] = ()) -> EntryMap | Refusal:
    first, second = view.rank(0), view.rank(right)
    if first is None or second is None:
        return Refusal(f"{view.op_type} has an operand of unknown rank")
    wide = max(first, second, 2) - 2
    outer = [tuple(range(wide))[wide - max(rank - 2, 0) :] for rank in (first, second)]
    operands = _along(view, per_column, COLUMNS)
    operands[0] = (SUMMED,) if first == 1 else (*outer[0], ROWS, SUMMED)
    operands[right] = (SUMMED,) if second == 1 else (*outer[1], SUMMED, COLUMNS)
    rows, columns = ((ROWS,) if first > 1 else ()), ((COLUMNS,) if second > 1 else ())
    return EntryMap(tuple(operands), ((*range(wide), *rows, *columns),))


def _along(view: NodeView, operands: Sequence[int], label: int) -> list[Labels | None]:
    """Of all operands these are vectors along an axis, unless they are numbers."""
    return [
        (label,) if index in operands and view.rank(index) == 1 else None
        for index in range(view.arity)
    ]


def gemm(view: NodeView) -> EntryMap | Refusal:
    return _gemm(view, right=1, added=2)


def gemm_of_bytes(view: NodeView) -> EntryMap | Refusal:
    return _gemm(view, right=3, added=6, per_column=(4, 5))


def _gemm(
    view: NodeView, right: int, added: int, per_column: tuple[int, ...] = ()
) -> EntryMap | Refusal:
    ranks = [view.rank(index) for index in (0, right, added) if view.has(index)]
    if None in ranks:
        return Refusal(f"{view.op_type} has an operand of unknown rank")
    operands = _along(view, per_column, COLUMNS)
    operands[0] = (SUMMED, ROWS) if view.integer("transA", 0) else (ROWS, SUMMED)
    operands[right] = (COLUMNS, SUMMED) if view.integer("transB", 0) else (SUMMED, COLUMNS)
    if view.has(added):
        operands[added] = (ROWS, COLUMNS)[2 - (view.rank(added) or 0) :]
    return EntryMap(tuple(operands), ((ROWS, COLUMNS),))


def convolution(
    weight: int = 1, per_result: tuple[int, ...] = (2,), *, is_transposed: bool = False
) -> EntryRule:
    """Channels are summed by the weight, or each of them has a filter of its own."""

    def rule(view: NodeView) -> EntryMap | Refusal:
        shape, rank, group = view.shape(weight), view.rank(0), view.integer("group", 1)
        if shape is None or rank is None:
            return Refusal(f"{view.op_type} has an operand of unknown rank")
        is_depthwise = group > 1 and group == shape[0] and shape[1] == 1
        if group > 1 and not is_depthwise:
            return Refusal(f"{view.op_type} sums channels in groups")
        read, batch, alone = SUMMED, ROWS, 2 * rank
        written = read if is_depthwise else COLUMNS
        spatial, kernel = tuple(range(rank - 2)), tuple(range(rank, 2 * rank - 2))
        filters = (read, written) if is_transposed else (written, read)
        operands = _along(view, per_result, written)
        operands[0] = (batch, read, *spatial)
        operands[weight] = (*((read, alone) if is_depthwise else filters), *kernel)
        fixed = frozenset((*spatial, *kernel))
        return EntryMap(tuple(operands), ((batch, written, *spatial),), fixed)

    return rule


def concat(view: NodeView, orders: Mapping[int, StoredOrder]) -> Sequence[Transport]:
    """Along its own axis each operand has an order of its own, and the result all of them."""
    rank = view.rank(0)
    axis = 0 if rank is None else view.integer("axis", 0) % rank
    lengths = [shape[axis] if (shape := view.shape(i)) else None for i in range(view.arity)]
    whole = [length for length in lengths if isinstance(length, int)]
    shuffles = {port: order for port, order in orders.items() if isinstance(order, Shuffle)}
    if rank is None or len(whole) < len(lengths) or any(s.axis != axis for s in shuffles.values()):
        return ()
    if not shuffles or sum(whole) > MOST_ENTRIES:
        return ()
    starts = np.cumsum([0, *whole])
    if RESULT in shuffles:
        parts = _cut(shuffles[RESULT].places, whole, starts)
    else:
        parts = [_places(shuffles.get(i), length) for i, length in enumerate(whole)]
    if parts is None:
        return ()
    inputs = tuple(Shuffle.of(rank, axis, part) for part in parts)
    joined = np.concatenate([start + part for start, part in zip(starts, parts, strict=False)])
    result = Shuffle.of(rank, axis, joined)
    return () if result is None else (Transport(inputs, (result,)),)


def _places(shuffle: Shuffle | None, length: int) -> EntryPlaces:
    return np.arange(length) if shuffle is None else shuffle.places


def _cut(
    places: EntryPlaces, lengths: Sequence[int], starts: EntryPlaces
) -> list[EntryPlaces] | None:
    """The order of each operand's entries, where none of them leaves its operand's part."""
    parts = [
        places[start : start + length] - start
        for start, length in zip(starts, lengths, strict=False)
    ]
    inside = all(
        part.min(initial=0) >= 0 and part.max(initial=0) < max(length, 1)
        for part, length in zip(parts, lengths, strict=True)
    )
    return parts if inside else None
