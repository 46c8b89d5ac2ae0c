"""Which axes of an operator belong together, so that they can be split into factors alike."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from relayout.graph.read import NodeView, Parameter, perm_of
from relayout.layout.permutation import axis_among
from relayout.layout.splitting import AxisMap, Labels, Spread, disagreeing, labels_aligned
from relayout.layout.transport import Changes, Refusal
from relayout.ops.named_axes import (
    AXES,
    PAD_AXES,
    PADS,
    SCALES_PER_AXIS,
    SLICE_AXES,
    SOFTMAX_OF_ONE_AXIS,
    keeps_axes,
    moved_axis,
    reduced_axes,
    slice_axes,
)

if TYPE_CHECKING:
    from relayout.ops.facts import AxesRule

REPEATS = Parameter("repeats", 1)
TARGET = Parameter("shape", 1)


def _axes(view: NodeView) -> Labels:
    return tuple(range(view.rank(0) or 0))


def _others(view: NodeView) -> tuple[None, ...]:
    return (None,) * (view.arity - 1)


def one_by_one(view: NodeView) -> AxisMap:
    """Every element of the first operand is treated by itself."""
    return AxisMap((_axes(view), *_others(view)), (_axes(view),) * view.results)


def broadcast(view: NodeView) -> AxisMap | Refusal:
    shapes = [shape for index in range(view.arity) if (shape := view.shape(index)) is not None]
    if len(shapes) < view.arity:
        return Refusal(f"the rank of an operand of {view.op_type} is unknown")
    wide = max(map(len, shapes))
    labels = [labels_aligned(len(shape), wide) for shape in shapes]
    lead = next(index for index, shape in enumerate(shapes) if len(shape) == wide)
    whole = disagreeing(zip(shapes, labels, strict=True))
    return AxisMap(tuple(labels), (tuple(range(wide)),), lead, whole)


def along(default: int) -> AxesRule:
    """The attribute `axis` names the one axis that is more than a collection."""

    def rule(view: NodeView) -> AxisMap:
        axis = axis_among(view.integer("axis", default), len(_axes(view)))
        return AxisMap(
            (_axes(view), *_others(view)),
            (_axes(view),) * view.results,
            whole=frozenset({axis}),
            renumber=lambda spread: moved_axis(view, spread, default),
        )

    return rule


def softmax(view: NodeView) -> AxisMap | Refusal:
    if view.version < SOFTMAX_OF_ONE_AXIS:
        return Refusal(f"{view.op_type} before opset 13 works on all trailing axes together")
    return along(-1)(view)


def concat(view: NodeView) -> AxisMap | Refusal:
    labels = _axes(view)
    shapes = [view.shape(index) for index in range(view.arity)]
    known = [shape for shape in shapes if shape is not None and len(shape) == len(labels)]
    if len(known) < len(shapes):
        return Refusal("an operand of Concat has another or an unknown rank")
    axis = axis_among(view.integer("axis", 0), len(labels))
    whole = frozenset({axis}) | disagreeing((shape, labels) for shape in known)
    return AxisMap(
        (labels,) * view.arity,
        (labels,),
        whole=whole,
        renumber=lambda spread: moved_axis(view, spread, 0),
    )


def trailing(view: NodeView) -> AxisMap | Refusal:
    """Normalisation over the last axes."""
    if sum(view.uses_result(index) for index in range(view.results)) > 1:
        return Refusal(f"{view.op_type} also returns its statistics")
    labels = _axes(view)
    axis = axis_among(view.integer("axis", -1), len(labels))
    return AxisMap(
        (labels, *_others(view)),
        (labels,) * view.results,
        whole=frozenset(range(axis, len(labels))),
        renumber=lambda spread: moved_axis(view, spread, -1),
    )


def reduced(view: NodeView) -> AxisMap | Refusal:
    labels = _axes(view)
    axes = reduced_axes(view, len(labels))
    if isinstance(axes, Refusal):
        return axes
    kept = labels if keeps_axes(view) else tuple(axis for axis in labels if axis not in axes)

    def renumber(spread: Spread) -> Changes:
        return AXES.write(view, sorted(map(spread.position, axes)))

    if not axes:
        return Refusal(f"{view.op_type} reduces nothing")
    return AxisMap((labels, *_others(view)), (kept,), whole=frozenset(axes), renumber=renumber)


def gather(view: NodeView) -> AxisMap | Refusal:
    """The axes of the indices take the place of the axis that is read."""
    labels, count = _axes(view), view.rank(1)
    if count is None:
        return Refusal("the rank of Gather's indices is unknown")
    axis = axis_among(view.integer("axis", 0), len(labels))
    new = tuple(range(len(labels), len(labels) + count))
    return AxisMap(
        (labels, None),
        ((*labels[:axis], *new, *labels[axis + 1 :]),),
        whole=frozenset({axis, *new}),
        renumber=lambda spread: moved_axis(view, spread, 0),
    )


def sliced(view: NodeView) -> AxisMap | Refusal:
    axes = slice_axes(view)
    if isinstance(axes, Refusal):
        return axes
    if SLICE_AXES.is_operand(view) and not view.has(SLICE_AXES.index):
        return Refusal("Slice names no axes")
    labels = _axes(view)
    return AxisMap(
        (labels, *_others(view)),
        (labels,),
        whole=frozenset(axis % len(labels) for axis in axes),
        renumber=lambda spread: SLICE_AXES.write(view, [spread.position(axis) for axis in axes]),
    )


def padded(view: NodeView) -> AxisMap | Refusal:
    axes, pads = PAD_AXES.read_ints(view), PADS.read_ints(view)
    labels = _axes(view)
    if axes is not None or not isinstance(pads, tuple) or len(pads) != 2 * len(labels):
        return Refusal("Pad names axes, or its pads are not known")

    def renumber(spread: Spread) -> Changes:
        halves = (pads[: len(labels)], pads[len(labels) :])
        widths = [
            width
            for half in halves
            for axis, width in enumerate(half)
            for width in (width, *(0,) * (spread.counts[axis] - 1))
        ]
        return PADS.write(view, widths)

    whole = frozenset(axis % len(labels) for axis, width in enumerate(pads) if width)
    return AxisMap((labels, *_others(view)), (labels,), whole=whole, renumber=renumber)


def repeated(view: NodeView) -> AxisMap | Refusal:
    """Tile: an axis that is not repeated is repeated once, and so are its factors."""
    repeats, labels = REPEATS.read_ints(view), _axes(view)
    if not isinstance(repeats, tuple) or len(repeats) != len(labels):
        return Refusal("Tile gets its repeats at run time")
    return _by_entry(view, repeats)


def expanded(view: NodeView) -> AxisMap | Refusal:
    """Expand: an axis that keeps its length is asked for length 1, and so are its factors."""
    target, shape = TARGET.read_ints(view), view.shape(0)
    if shape is None or not isinstance(target, tuple) or len(target) != len(shape):
        return Refusal("Expand adds axes, or gets its target shape at run time")
    kept = zip(target, shape, strict=True)
    return _by_entry(view, tuple(1 if entry == length else entry for entry, length in kept))


def _by_entry(view: NodeView, entries: tuple[int, ...]) -> AxisMap:
    """The second operand has an entry for every axis, and 1 changes nothing."""

    def renumber(spread: Spread) -> Changes:
        spreads = zip(entries, spread.counts, strict=True)
        new = [item for entry, count in spreads for item in (entry, *(1,) * (count - 1))]
        return Changes(constants={1: np.asarray(new, np.int64)})

    labels = _axes(view)
    whole = frozenset(axis for axis, entry in enumerate(entries) if entry != 1)
    return AxisMap((labels, None), (labels,), whole=whole, renumber=renumber)


def by_channel(view: NodeView) -> AxisMap | Refusal:
    """Batch and channels stay where they are; all places are treated alike."""
    if not view.integer("spatial", 1):
        return Refusal(f"{view.op_type} with spatial=0 has parameters for every place")
    if view.results > 1:
        return Refusal(f"{view.op_type} also returns its statistics")
    labels = _axes(view)
    return AxisMap((labels, *_others(view)), (labels,), whole=frozenset({0, 1}))


def transposed(view: NodeView) -> AxisMap | Refusal:
    order = perm_of(view.node)
    if order is None:
        return Refusal("Transpose has a perm that does not fit its operand")

    def renumber(spread: Spread) -> Changes:
        perm = tuple(place for axis in order for place in spread.places(axis))
        return Changes(attributes={"perm": perm})

    return AxisMap((_axes(view),), (order.axes,), renumber=renumber)


def product(view: NodeView) -> AxisMap | Refusal:
    """Batch axes are collections; beside a single matrix the rows are so too."""
    left, right = view.shape(0), view.shape(1)
    if left is None or right is None or min(len(left), len(right)) < 2:
        return Refusal("MatMul has an operand of unknown rank or of one axis")
    wide = max(len(left), len(right))
    rows, columns, summed = wide - 2, wide - 1, wide
    batches = [labels_aligned(len(shape) - 2, wide - 2) for shape in (left, right)]
    outer = (left[:-2], right[:-2])
    whole = disagreeing(zip(outer, batches, strict=True))
    first, second = (*batches[0], rows, summed), (*batches[1], summed, columns)
    alone = len(right) == 2
    return AxisMap(
        (first, None if alone else second),
        (tuple(range(wide)),),
        whole=whole | {columns, summed} | (frozenset() if alone else {rows}),
    )


def quantized(view: NodeView) -> AxisMap | Refusal:
    scale = view.shape(1)
    if scale is None or view.integer("block_size", 0):
        return Refusal(f"the scale of {view.op_type} is unknown or blocked")
    if all(length == 1 for length in scale):
        return one_by_one(view)
    if view.version < SCALES_PER_AXIS:
        return Refusal(f"{view.op_type} has a scale that does not fit its axis")
    return along(1)(view)
