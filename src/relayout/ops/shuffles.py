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
from relayout.layout.splitting import Labels
from relayout.layout.transport import Changes, Refusal, Transport
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
        found = entries(view)
        if isinstance(found, Refusal) or not isinstance(order, Shuffle):
            return ()
        label = found.label(port, order.axis)
        answer = None if label is None else _followed(view, found, label, order.places)
        return () if answer is None else (answer,)

    return ShuffleFacts(rule)


def _followed(view: NodeView, found: EntryMap, label: int, places: EntryPlaces) -> Transport | None:
    inputs: list[StoredOrder | None] = [None] * view.arity
    takes: dict[int, Shuffle] = {}
    for index, labels in enumerate(found.operands):
        shape = view.shape(index) if view.has(index) else None
        if labels is None or label not in labels or shape is None:
            continue
        axis = labels.index(label)
        if labels.count(label) > 1 or shape[axis] not in {1, len(places)}:
            return None
        shuffle = Shuffle.of(len(shape), axis, places) if shape[axis] != 1 else None
        if shuffle is not None and view.is_constant(index):
            takes[index] = shuffle
        elif shuffle is not None:
            inputs[index] = shuffle
    if not takes and not any(inputs):
        return None
    outputs = [_of_result(labels, label, places) for labels in found.results]
    return Transport(tuple(inputs), tuple(outputs), Changes(takes=takes))


def _of_result(labels: Labels, label: int, places: EntryPlaces) -> Shuffle | None:
    if label not in labels:
        return None
    return Shuffle.of(len(labels), labels.index(label), places)


# Operators that fix an axis, and yet treat its entries alike


def _axes(view: NodeView) -> Labels:
    return tuple(range(view.rank(0) or 0))


def _ranks_are_known(view: NodeView) -> bool:
    return all(view.rank(index) is not None for index in range(view.arity) if view.has(index))


def softmax(view: NodeView) -> EntryMap | Refusal:
    """Every entry is divided by the same sum."""
    if view.version < SOFTMAX_OF_ONE_AXIS:
        return Refusal(f"{view.op_type} before opset 13 works on all trailing axes together")
    return EntryMap((_axes(view),), (_axes(view),))


def by_channel(view: NodeView) -> EntryMap | Refusal:
    """Each channel has parameters of its own."""
    if view.results > 1 or view.integer("training_mode", 0):
        return Refusal(f"{view.op_type} also returns its statistics")
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


def matmul(view: NodeView) -> EntryMap | Refusal:
    left, right = view.rank(0), view.rank(1)
    if left is None or right is None:
        return Refusal("MatMul has an operand of unknown rank")
    rows, columns, summed = range(-3, 0)
    wide = max(left, right, 2) - 2
    outer = [tuple(range(wide))[wide - max(rank - 2, 0) :] for rank in (left, right)]
    first = (summed,) if left == 1 else (*outer[0], rows, summed)
    second = (summed,) if right == 1 else (*outer[1], summed, columns)
    result = (
        *range(max(left, right) - 2),
        *((rows,) if left > 1 else ()),
        *((columns,) if right > 1 else ()),
    )
    return EntryMap((first, second), (result,))


def gemm(view: NodeView) -> EntryMap | Refusal:
    if not _ranks_are_known(view):
        return Refusal("Gemm has an operand of unknown rank")
    rows, columns, summed = 0, 1, 2
    first = (summed, rows) if view.integer("transA", 0) else (rows, summed)
    second = (columns, summed) if view.integer("transB", 0) else (summed, columns)
    added = (rows, columns)[2 - (view.rank(2) or 0) :] if view.has(2) else None
    return EntryMap((first, second, added)[: view.arity], ((rows, columns),))


def convolution(result_axis: int) -> EntryRule:
    """Channels are summed by the weight, or each of them has a filter of its own."""

    def rule(view: NodeView) -> EntryMap | Refusal:
        weight, rank, group = view.shape(1), view.rank(0), view.integer("group", 1)
        if weight is None or rank is None:
            return Refusal(f"{view.op_type} has an operand of unknown rank")
        batch, read, written = -3, -2, -1
        spatial = tuple(range(rank - 2))
        is_depthwise = group > 1 and group == weight[0] and weight[1] == 1
        if group > 1 and not is_depthwise:
            return Refusal(f"{view.op_type} sums channels in groups")
        if is_depthwise:
            written = read
        kernel = tuple(range(rank, 2 * rank - 2))
        first, second = (written, read) if result_axis == 0 else (read, written)
        filters = (read, 2 * rank) if is_depthwise else (first, second)
        added = ((written,),) if view.arity > 2 else ()
        return EntryMap(
            ((batch, read, *spatial), (*filters, *kernel), *added),
            ((batch, written, *spatial),),
            frozenset((*spatial, *kernel)),
        )

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
    starts = np.cumsum([0, *whole])
    if RESULT in shuffles:
        parts = _cut(shuffles[RESULT].places, whole, starts)
    else:
        parts = [_places(shuffles.get(i), length) for i, length in enumerate(whole)]
    if parts is None:
        return ()
    found = [Shuffle.of(rank, axis, part) for part in parts]
    takes = {i: s for i, s in enumerate(found) if s and view.is_constant(i)}
    inputs = tuple(None if i in takes else s for i, s in enumerate(found))
    joined = np.concatenate([start + part for start, part in zip(starts, parts, strict=False)])
    result = Shuffle.of(rank, axis, joined)
    if result is None or (not takes and not any(inputs)):
        return ()
    return (Transport(inputs, (result,), Changes(takes=takes)),)


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
