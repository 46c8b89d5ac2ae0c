"""The small steps exporters write around an attention: scalings, and parts of packed operands."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from relayout.graph.read import constant_of, is_op, rank_of, shape_of
from relayout.graph.region import Region


@dataclass(frozen=True, slots=True)
class Scaling:
    """What a product is multiplied by: a number, and values of one element, known at run time."""

    number: float = 1.0
    values: tuple[ir.Value, ...] = ()

    @property
    def is_one(self) -> bool:
        return self.number == 1 and not self.values

    def times(self, other: Scaling) -> Scaling:
        return Scaling(self.number * other.number, (*self.values, *other.values))


UNSCALED = Scaling()


def scaling_of(node: ir.Node) -> tuple[ir.Value, Scaling] | None:
    """What a node scales, and by how much; None where it does something else."""
    if not is_op(node, "Mul", "Div"):
        return None
    left, right = node.inputs
    if left is None or right is None:
        return None
    factor = _factor(right, left)
    if is_op(node, "Div"):
        divides = factor is not None and not factor.values and factor.number != 0
        return (left, Scaling(1 / factor.number)) if factor is not None and divides else None
    if factor is not None:
        return left, factor
    factor = _factor(left, right)
    return None if factor is None else (right, factor)


def _factor(value: ir.Value, scaled: ir.Value) -> Scaling | None:
    """A value of one element that does not widen what it scales."""
    shape, rank = shape_of(value), rank_of(scaled)
    if shape is None or rank is None or len(shape) > min(rank, 3):
        return None
    if any(length != 1 for length in shape):
        return None
    number = scalar_of(value)
    return Scaling(1.0, (value,)) if number is None else Scaling(number)


def scalar_of(value: ir.Value | None) -> float | None:
    """The number a value always holds, if it is one."""
    tensor = constant_of(value)
    return None if tensor is None or tensor.size != 1 else float(tensor.numpy().reshape(-1)[0])


@dataclass(frozen=True, slots=True)
class Selection:
    """A value that is one of several equal parts of another one, along an axis."""

    whole: ir.Value
    axis: int
    part: int
    parts: int
    node: ir.Node
    dropped: bool = False
    """Whether the part has lost the axis."""


def selection_of(value: ir.Value, region: Region) -> Selection | None:
    """Read a leg of a Split, a Slice or a Gather of one entry as one of equal parts."""
    node = value.producer()
    whole = None if node is None or not node.inputs else node.inputs[0]
    if node is None or whole is None:
        return None
    if is_op(node, "Split"):
        return _leg(node, value, whole, region)
    if is_op(node, "Gather"):
        return _gathered(node, whole, region)
    return _sliced(node, whole, region) if is_op(node, "Slice") else None


def _leg(node: ir.Node, value: ir.Value, whole: ir.Value, region: Region) -> Selection | None:
    shapes, given = [shape_of(leg) for leg in node.outputs], shape_of(whole)
    axis = region.view(node).integer("axis", 0)
    if given is None or not -len(given) <= axis < len(given):
        return None
    axis %= len(given)
    lengths = {shape[axis] if shape is not None else None for shape in shapes}
    if len(lengths) != 1 or not isinstance(lengths.pop(), int):
        return None
    part = next(index for index, leg in enumerate(node.outputs) if leg is value)
    return Selection(whole, axis, part, len(node.outputs), node)


def _sliced(node: ir.Node, whole: ir.Value, region: Region) -> Selection | None:
    view, shape = region.view(node), shape_of(whole)
    starts, ends, axes, steps = (view.constant(index) for index in range(1, 5))
    if shape is None or starts is None or ends is None or axes is None:
        return None
    if starts.size != 1 or (view.has(4) and (steps is None or np.any(steps != 1))):
        return None
    axis = int(axes.reshape(-1)[0])
    length = shape[axis] if -len(shape) <= axis < len(shape) else None
    if not isinstance(length, int):
        return None
    start, end, _ = slice(int(starts.reshape(-1)[0]), int(ends.reshape(-1)[0])).indices(length)
    width = end - start
    if width < 1 or length % width or start % width:
        return None
    return Selection(whole, axis % len(shape), start // width, length // width, node)


def _gathered(node: ir.Node, whole: ir.Value, region: Region) -> Selection | None:
    view, shape = region.view(node), shape_of(whole)
    index, axis = view.constant(1), view.integer("axis", 0)
    if shape is None or index is None or index.ndim or not -len(shape) <= axis < len(shape):
        return None
    length = shape[axis]
    if not isinstance(length, int) or not -length <= int(index) < length:
        return None
    return Selection(whole, axis % len(shape), int(index) % length, length, node, dropped=True)
