"""Axes that a node names, in an attribute or in an operand."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol

from relayout.graph.read import NodeView, Parameter
from relayout.layout.transport import Changes, Refusal

if TYPE_CHECKING:
    from relayout.layout.permutation import Permutation

AXES = Parameter("axes", 1)
STARTS = Parameter("starts", 1)
SLICE_AXES = Parameter("axes", 3)
PADS = Parameter("pads", 1)
PAD_AXES = Parameter("axes", 3)

SOFTMAX_OF_ONE_AXIS = 13
"""The opset version from which Softmax and similar operators work along one axis."""

SCALES_PER_AXIS = 13
"""The opset version from which quantisers may have a scale per index of an axis."""


class Places(Protocol):
    """Where axes are stored now."""

    def position(self, axis: int) -> int: ...


def moved_axis(view: NodeView, order: Places, default: int) -> Changes:
    """The attribute `axis` names the same axis where it is stored now."""
    return Changes(attributes={"axis": order.position(view.integer("axis", default))})


def named_at_run_time(view: NodeView, parameter: Parameter) -> bool:
    """Whether an operand of a known type names axes that are known only at run time."""
    if not parameter.is_operand(view) or not view.has(parameter.index):
        return False
    value = view.node.inputs[parameter.index]
    return view.constant(parameter.index) is None and value is not None and value.dtype is not None


def looked_up(order: Permutation, parameter: Parameter) -> Changes:
    """Axes named at run time are found where they are stored; -1 finds the last entry."""
    return Changes(lookups={parameter.index: order.inverse().axes})


def slice_axes(view: NodeView) -> tuple[int, ...] | Refusal:
    """Axes that are left out are the first ones, as many as there are starts."""
    axes = SLICE_AXES.read_ints(view)
    if axes is not None:
        return axes
    starts = STARTS.read_ints(view)
    if isinstance(starts, tuple):
        return tuple(range(len(starts)))
    shape = view.shape(STARTS.index)
    if not shape or not isinstance(shape[0], int):
        return Refusal("Slice names no axes and gets an unknown number of starts")
    return tuple(range(shape[0]))


def counted_from_front(axes: Iterable[int], rank: int) -> tuple[int, ...]:
    """Each of the axes once; -1 is the last."""
    return tuple(dict.fromkeys(axis + rank if axis < 0 else axis for axis in axes))


def reduced_axes(view: NodeView, rank: int) -> tuple[int, ...] | Refusal:
    """Those named; if none are, then all or none, as the node's attribute states."""
    axes = AXES.read_ints(view)
    if isinstance(axes, Refusal):
        return axes
    if axes:
        return counted_from_front(axes, rank)
    return () if view.integer("noop_with_empty_axes", 0) else tuple(range(rank))


def keeps_axes(view: NodeView) -> bool:
    return bool(view.integer("keepdims", 1))
