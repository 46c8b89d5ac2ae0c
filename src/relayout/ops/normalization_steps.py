"""Normalisations written as several nodes, for orders their own operators cannot run in."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import onnx_ir as ir

from relayout.layout.permutation import Permutation
from relayout.layout.transport import Array, Changes, Refusal, Step, Transport
from relayout.ops.rule import lead_only

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from relayout.graph.read import NodeView

FLOAT, DOUBLE = ir.DataType.FLOAT, ir.DataType.DOUBLE


def batch(view: NodeView, order: Permutation) -> Transport | Refusal:
    """A factor and a shift for every channel, computed now where that is possible."""
    if not _has_type(view, FLOAT, DOUBLE):
        return _imprecise(view)
    parameters = [view.constant(index) for index in range(1, 5)]
    known = [parameter for parameter in parameters if parameter is not None]
    if len(known) < len(parameters):
        return _per_channel(view, order, _batch_at_run_time(view))
    folded = _folded(known, _epsilon(view))
    if not all(np.isfinite(array).all() for array in folded):
        return Refusal("BatchNormalization scales or shifts a channel without bound")
    shape = (-1, *(1 for _ in _unit_axes_of_channels(order)))
    factor, shift = (array.reshape(shape) for array in folded)
    return lead_only(view, order, _changes(_scaled_and_shifted(0, factor, shift)))


def instance(view: NodeView, order: Permutation) -> Transport | Refusal:
    if not _has_type(view, FLOAT, DOUBLE):
        return _imprecise(view)
    if order.rank < 3:
        return Refusal("InstanceNormalization has no axes to normalise")
    axes = _stored(order, range(2, order.rank))
    steps = (
        *_centred(view, axes),
        *_deviation(view, "centred", axes),
        Step("Div", (1, "deviation"), "factor"),
        *_scaled_and_shifted("centred", "factor", 2),
    )
    return _per_channel(view, order, steps)


def _batch_at_run_time(view: NodeView) -> tuple[Step, ...]:
    """The factor is scale / deviation, the shift is bias - mean * factor."""
    return (
        *_root(view, 4),
        Step("Div", (1, "deviation"), "factor"),
        Step("Mul", (3, "factor"), "scaled_mean"),
        Step("Sub", (2, "scaled_mean"), "shift"),
        *_scaled_and_shifted(0, "factor", "shift"),
    )


def _folded(parameters: Sequence[Array], epsilon: float) -> tuple[Array, Array]:
    """The same two vectors, rounded once; not finite where a variance vanishes."""
    dtype = parameters[0].dtype
    scale, bias, mean, variance = (parameter.astype(np.float64) for parameter in parameters)
    with np.errstate(all="ignore"):
        factor = scale / np.sqrt(variance + epsilon)
        return factor.astype(dtype), (bias - mean * factor).astype(dtype)


def _centred(view: NodeView, axes: Sequence[int]) -> tuple[Step, ...]:
    return (_mean(view, 0, axes, "mean"), Step("Sub", (0, "mean"), "centred"))


def _deviation(view: NodeView, operand: int | str, axes: Sequence[int]) -> tuple[Step, ...]:
    """The root of the mean square of a tensor."""
    return (
        Step("Mul", (operand, operand), "squares"),
        _mean(view, "squares", axes, "variance"),
        *_root(view, "variance"),
    )


def _root(view: NodeView, variance: int | str) -> tuple[Step, ...]:
    """The root of a variance, which `epsilon` keeps away from zero."""
    lead = view.node.inputs[0]
    dtype = np.float64 if lead is not None and lead.dtype == DOUBLE else np.float32
    epsilon = np.asarray(_epsilon(view), dtype)
    return (
        Step("Add", (variance, epsilon), "steadied"),
        Step("Sqrt", ("steadied",), "deviation"),
    )


def _mean(view: NodeView, operand: int | str, axes: Sequence[int], result: str) -> Step:
    if view.version < 18:
        return Step("ReduceMean", (operand,), result, {"axes": axes, "keepdims": 1})
    return Step("ReduceMean", (operand, np.asarray(axes, np.int64)), result, {"keepdims": 1})


def _scaled_and_shifted(
    operand: int | str, factor: int | str | Array, shift: int | str | Array
) -> tuple[Step, ...]:
    return (Step("Mul", (operand, factor), "scaled"), Step("Add", ("scaled", shift)))


def _per_channel(view: NodeView, order: Permutation, steps: tuple[Step, ...]) -> Transport:
    """Steps that read parameters of one entry per channel, lined up with the stored channels."""
    unit_axes = _unit_axes_of_channels(order)
    unsqueezes = dict.fromkeys(range(1, view.arity), unit_axes) if unit_axes else {}
    return lead_only(view, order, Changes(unsqueezes=unsqueezes) | _changes(steps))


def _unit_axes_of_channels(order: Permutation) -> tuple[int, ...]:
    """Where a vector needs axes of length 1 to line up with the stored channels."""
    return tuple(range(1, order.rank - order.position(1)))


def _changes(steps: tuple[Step, ...]) -> Changes:
    return Changes(steps=steps, extra_passes=_passes(steps) - 1)


def _passes(steps: tuple[Step, ...]) -> int:
    """How many times steps read and write a tensor of the lead's size; a mean only reads it."""
    large: set[int | str] = {0}
    halves = 0
    for step in steps:
        named = [item for item in step.operands if isinstance(item, int | str)]
        if large.isdisjoint(named):
            continue
        halves += 1
        if step.op_type != "ReduceMean":
            halves += 1
            large.add(step.result)
    return (halves + 1) // 2


def _stored(order: Permutation, axes: Iterable[int]) -> tuple[int, ...]:
    return tuple(sorted(map(order.position, axes)))


def _epsilon(view: NodeView) -> float:
    attribute = view.node.attributes.get("epsilon")
    return 1e-5 if attribute is None else attribute.as_float()


def _has_type(view: NodeView, *types: ir.DataType) -> bool:
    """Whether every operand has the same one of these types."""
    found = {value.dtype for value in view.node.inputs if value is not None}
    return len(found) == 1 and found <= set(types)


def _imprecise(view: NodeView) -> Refusal:
    return Refusal(
        f"{view.op_type} would run as several nodes in this order, which round to its element type"
    )
