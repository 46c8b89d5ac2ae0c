"""Operators that move, repeat, crop or interpolate along each axis by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from relayout.graph.read import NodeView, Parameter
from relayout.layout.transport import Changes, Refusal, Transport
from relayout.ops import axis_maps, block_moves
from relayout.ops.facts import (
    CARRIES,
    CHANNELS_FIRST,
    Evaluation,
    LayoutFacts,
    LengthFacts,
    NumberFacts,
    OpFacts,
    Storage,
)
from relayout.ops.kernels import OPAQUE, KernelFacts, Role
from relayout.ops.kind import Kind
from relayout.ops.lengths import cuts, entries
from relayout.ops.named_axes import (
    PAD_AXES,
    PADS,
    SLICE_AXES,
    STARTS,
    looked_up,
    named_at_run_time,
    slice_axes,
)
from relayout.ops.rule import OpRule, barrier, lead_only

if TYPE_CHECKING:
    from collections.abc import Iterable

    from relayout.layout.permutation import Permutation


def positions(order: Permutation, axes: Iterable[int]) -> tuple[int, ...]:
    """Where each of these axes is stored; what belongs to an axis keeps its place in the list."""
    return tuple(order.position(axis) for axis in axes)


def halves(order: Permutation) -> tuple[int, ...]:
    """The order of a vector with one entry per axis for the starts, then one for the ends."""
    return (*order.axes, *(axis + order.rank for axis in order))


def reordered(view: NodeView, parameter: Parameter, entries: tuple[int, ...]) -> Changes | Refusal:
    """The parameter with its entries read at these places, known now or at run time."""
    value = parameter.read(view)
    if value is None:
        return Changes()
    if not isinstance(value, Refusal):
        if value.size != len(entries):
            return Refusal(f"{view.op_type} has {value.size} {parameter.name}, not {len(entries)}")
        return parameter.write(view, value.reshape(-1)[list(entries)])
    if view.shape(parameter.index) != (len(entries),):
        return Refusal(f"{view.op_type} gets its {parameter.name} at run time, how many is unknown")
    return Changes(gathers={parameter.index: entries})


def slice_(view: NodeView, order: Permutation) -> Transport | Refusal:
    if named_at_run_time(view, SLICE_AXES):
        return lead_only(view, order, looked_up(order, SLICE_AXES))
    axes = slice_axes(view)
    if isinstance(axes, Refusal):
        return axes
    stored = positions(order, axes)
    if not SLICE_AXES.is_operand(view) or view.has(SLICE_AXES.index):
        return lead_only(view, order, SLICE_AXES.write(view, stored))
    starts = view.node.inputs[STARTS.index]
    if starts is None or starts.dtype is None:
        return Refusal("Slice has starts of unknown type, which its axes must share")
    written = np.asarray(stored, starts.dtype.numpy())
    return lead_only(view, order, Changes(constants={SLICE_AXES.index: written}))


def pad(view: NodeView, order: Permutation) -> Transport | Refusal:
    if named_at_run_time(view, PAD_AXES):
        return lead_only(view, order, looked_up(order, PAD_AXES))
    axes = PAD_AXES.read_ints(view)
    if isinstance(axes, Refusal):
        return axes
    if axes is not None:
        return lead_only(view, order, PAD_AXES.write(view, positions(order, axes)))
    return _restated(view, order, reordered(view, PADS, halves(order)))


def tile(view: NodeView, order: Permutation) -> Transport | Refusal:
    return _restated(view, order, reordered(view, Parameter("repeats", 1), order.axes))


def upsample(view: NodeView, order: Permutation) -> Transport | Refusal:
    return _restated(view, order, reordered(view, Parameter("scales", 1), order.axes))


def resize(view: NodeView, order: Permutation) -> Transport | Refusal:
    if not _has_kernel(view, order):
        mode = view.string("mode", "nearest")
        return Refusal(f"runtimes interpolate ({mode}) along neighbouring spatial axes only")
    axes = view.ints("axes")
    if axes is not None:
        return lead_only(view, order, Changes(attributes={"axes": positions(order, axes)}))
    if view.version < 11:
        return upsample(view, order)
    changes = Changes()
    for name, index, places in (
        ("roi", 1, halves(order)),
        ("scales", 2, order.axes),
        ("sizes", 3, order.axes),
    ):
        change = _unless_empty(view, Parameter(name, index), places)
        if isinstance(change, Refusal):
            return change
        changes |= change
    return lead_only(view, order, changes)


def _has_kernel(view: NodeView, order: Permutation) -> bool:
    """Whether runtimes can interpolate where this order stores the axes that change.

    They know channels first and, but for cubic interpolation, channels last.
    """
    mode = view.string("mode", "nearest")
    if mode == "nearest" or order.rank < 3:
        return True
    stored = {order.position(axis) for axis in resized_axes(view, order.rank)}
    inner = set(range(2, order.rank))
    return stored <= inner or (mode == "linear" and stored <= set(range(1, order.rank - 1)))


def resized_axes(view: NodeView, rank: int) -> list[int]:
    """The axes whose length may change; without better knowledge all but batch and channels."""
    scales = view.constant(2 if view.version >= 11 else 1)
    named = view.ints("axes")
    if scales is None or not scales.size:
        return [*range(2, rank)] if named is None else [axis % rank for axis in named]
    axes = range(rank) if named is None else [axis % rank for axis in named]
    return [axis for axis, scale in zip(axes, scales.tolist(), strict=False) if scale != 1]


def _unless_empty(
    view: NodeView, parameter: Parameter, entries: tuple[int, ...]
) -> Changes | Refusal:
    """A vector without entries counts as left out."""
    if view.shape(parameter.index) == (0,):
        return Changes()
    return reordered(view, parameter, entries)


def center_crop_pad(view: NodeView, order: Permutation) -> Transport | Refusal:
    axes = view.ints("axes")
    if axes is not None:
        return lead_only(view, order, Changes(attributes={"axes": positions(order, axes)}))
    return _restated(view, order, reordered(view, Parameter("shape", 1), order.axes))


def trilu(view: NodeView, order: Permutation) -> Transport | Refusal:
    """The other triangle, where rows and columns change places."""
    matrix = (order.rank - 2, order.rank - 1)
    if not order.keeps(matrix):
        return Refusal("Trilu works on the matrices of its last two axes, which this order parts")
    if order.fixes(*matrix):
        return lead_only(view, order)
    upper = Changes(attributes={"upper": 1 - view.integer("upper", 1)})
    if not view.has(1):
        return lead_only(view, order, upper)
    diagonal = view.constant(1)
    if diagonal is None:
        return Refusal("Trilu gets its k at run time")
    return lead_only(view, order, upper | Changes(constants={1: np.asarray(np.negative(diagonal))}))


def _restated(
    view: NodeView, order: Permutation, changes: Changes | Refusal
) -> Transport | Refusal:
    return changes if isinstance(changes, Refusal) else lead_only(view, order, changes)


def _block_move(op_type: str) -> OpFacts:
    def places(view: NodeView) -> tuple[str, int, str]:
        return op_type, view.integer("blocksize", 0), view.string("mode", "DCR")

    return OpFacts(
        (op_type,),
        block_moves.RULE,
        kernel=KernelFacts(Kind.INJECTIVE, move=places),
        layout=CHANNELS_FIRST,
    )


MOVES = NumberFacts(Evaluation.MOVES)
SHAPED = LengthFacts(is_shaped_by_constants=True)
INTERPOLATING = LayoutFacts(prefers_channels_first=True, carries=True)

FACTS: tuple[OpFacts, ...] = (
    OpFacts(
        ("Slice",),
        OpRule(slice_),
        kernel=KernelFacts(Kind.INJECTIVE, shaping=(1, 2, 3, 4)),
        layout=CARRIES,
        axes=axis_maps.sliced,
        lengths=LengthFacts(entries.sliced, cuts=cuts.sliced, is_shaped_by_constants=True),
        numbers=MOVES,
        storage=Storage.PART,
    ),
    OpFacts(
        ("Pad",),
        OpRule(pad),
        kernel=KernelFacts(Kind.INJECTIVE, (1, 2, 3), (1, 3)),
        layout=CARRIES,
        axes=axis_maps.padded,
        lengths=SHAPED,
        storage=Storage.PASSED,
    ),
    OpFacts(
        ("Tile",),
        OpRule(tile),
        kernel=KernelFacts(Kind.BROADCAST, shaping=(1,), role=Role.GATHER),
        layout=CARRIES,
        axes=axis_maps.repeated,
        lengths=SHAPED,
        numbers=MOVES,
    ),
    OpFacts(
        ("Upsample",),
        OpRule(upsample),
        kernel=KernelFacts(Kind.INJECTIVE, shaping=(1,)),
        layout=INTERPOLATING,
        storage=Storage.PASSED,
    ),
    OpFacts(
        ("Resize",),
        OpRule(resize),
        kernel=KernelFacts(Kind.INJECTIVE, shaping=(1, 2, 3)),
        layout=INTERPOLATING,
        lengths=SHAPED,
        storage=Storage.PASSED,
    ),
    OpFacts(
        ("CenterCropPad",),
        OpRule(center_crop_pad),
        kernel=KernelFacts(Kind.INJECTIVE, shaping=(1,)),
        layout=CARRIES,
    ),
    OpFacts(
        ("Trilu",),
        OpRule(trilu),
        kernel=KernelFacts(Kind.ELEMENTWISE, (1,)),
        layout=CARRIES,
        numbers=NumberFacts(Evaluation.INTEGERS),
    ),
    _block_move("DepthToSpace"),
    _block_move("SpaceToDepth"),
    OpFacts(
        ("Col2Im",),
        barrier("Col2Im packs channels and the places of a block into axis 1"),
        kernel=OPAQUE,
    ),
)
