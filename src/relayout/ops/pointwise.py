"""Convolutions with windows of one element, whose batch can be any axes.

They are products of matrices, and a product by a constant matrix is such a convolution.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import onnx_ir as ir

from relayout.graph.read import constant_of, is_op
from relayout.layout.blocks import UNIT, Reshaping, Sizes, product, sizes_of
from relayout.layout.permutation import Permutation
from relayout.layout.transport import Changes, Refusal, Step, Transport
from relayout.ops.rule import lead_only

if TYPE_CHECKING:
    from relayout.graph.read import NodeView

PRODUCT, SUM = "MatMul", "Add"
"""What a convolution with a bias becomes in other orders."""

CONVOLVED_RANKS = range(4, 6)
"""With fewer axes a product reads channels in place 1 itself; with more no runtime convolves."""

REAL = frozenset((ir.DataType.FLOAT, ir.DataType.DOUBLE))
"""The types that common runtimes multiply matrices of."""

RESHAPE_BY_OPERAND = 5
"""The opset version from which Reshape takes its target as an operand."""


def folded(view: NodeView, order: Permutation, weight: int) -> Transport | Refusal:
    """A convolution takes all axes that are stored before its channels as its batch.

    Axes of length 1 after the channels keep the others in place: [N,H,C,W] is [N*H,C,1,W], so that
    the node and its weight, which has a length of 1 along each of them, stay as they are.
    """
    channels = order.position(1)
    if not _is_pointwise(view, weight):
        return fixed_axes(view)
    if channels == 1:
        return lead_only(view, order)
    if channels == 0 or channels == order.rank - 1 or view.version < RESHAPE_BY_OPERAND:
        return Refusal(f"{view.op_type} needs an axis before its channels and one after")
    lengths, windows = view.shape(0), view.shape(weight)
    if lengths is None or windows is None or 0 in lengths:
        return fixed_axes(view)
    stored = order.reorder(sizes_of(lengths, "source"))
    given = (*stored[:channels], sizes_of(windows, "weight")[0], *stored[channels + 1 :])
    into = _target(stored, _batched(stored, channels))
    back = _target(_batched(given, channels), given)
    if into is None or back is None:
        return Refusal(f"{view.op_type} has several lengths that are known only at run time")
    return lead_only(view, order, Changes(reshapes={0: into}, result_reshapes={0: back}))


def _batched(stored: Sizes, channels: int) -> Sizes:
    """The lengths with all that is stored before the channels as one axis."""
    ones = (UNIT,) * (channels - 1)
    return (product(stored[:channels]), stored[channels], *ones, *stored[channels + 1 :])


def _target(source: Sizes, result: Sizes) -> tuple[int, ...] | None:
    as_stored = Permutation.identity(len(source))
    return Reshaping(source, result).target(as_stored, as_stored)


def fixed_axes(view: NodeView) -> Refusal:
    return Refusal(f"{view.op_type} takes its batch from axis 0 and its channels from axis 1")


def convolution_as_product(view: NodeView, order: Permutation) -> Transport | Refusal:
    """Conv with its channels stored last, or second to last, is a MatMul by its weight."""
    if not _is_pointwise(view, 1) or view.integer("group", 1) != 1 or view.dtype(0) not in REAL:
        return fixed_axes(view)
    from_end = order.rank - order.position(1)
    if from_end > 2:
        return Refusal("Conv takes its channels from axis 1; MatMul would from the last two")
    constant = view.constant(1)
    if constant is None:
        return _by_quantised_weight(view, order, from_end)
    weight = constant.reshape(constant.shape[:2])
    factors = (0, weight.T) if from_end == 1 else (weight, 0)
    if not view.has(2):
        return lead_only(view, order, Changes(steps=(Step(PRODUCT, factors),)))
    return lead_only(view, order, _biased(factors, from_end))


def _by_quantised_weight(view: NodeView, order: Permutation, from_end: int) -> Transport | Refusal:
    """A quantised weight is stored with its windows as batch axes, so that its scales follow."""
    producer = view.node.inputs[1].producer() if view.node.inputs[1] is not None else None
    if producer is None or not is_op(producer, "DequantizeLinear"):
        return fixed_axes(view)
    if constant_of(producer.inputs[0]) is None:
        return Refusal("Conv has a weight that is computed at run time")
    windows, columns_first = range(2, order.rank), from_end == 1
    stored = Permutation((*windows, *((1, 0) if columns_first else (0, 1))))
    if view.has(2):
        factors = (0, 1) if columns_first else (1, 0)
        return Transport((order, stored, None), (order,), _biased(factors, from_end))
    changes = Changes(
        attributes=dict.fromkeys(view.node.attributes),
        op_type=PRODUCT,
        operand_order=None if columns_first else (1, 0),
    )
    return Transport((order, stored), (order,), changes)


def _biased(factors: tuple[Any, Any], from_end: int) -> Changes:
    """A product of two factors, to which operand 2 is added along the axis of its channels."""
    return Changes(
        unsqueezes={2: (1,)} if from_end == 2 else {},
        steps=(Step(PRODUCT, factors, "product"), Step(SUM, ("product", 2))),
        extra_passes=1,
    )


def _is_pointwise(view: NodeView, weight: int) -> bool:
    """Whether a convolution has windows of one element, no strides and no padding."""
    windows = view.shape(weight)
    if windows is None or any(length != 1 for length in windows[2:]):
        return False
    steps = view.ints("strides") or ()
    return all(step == 1 for step in steps) and not any(view.ints("pads") or ())


def product_as_convolution(view: NodeView, order: Permutation) -> Transport | Refusal:
    """MatMul by a constant matrix with the summed axis stored in place 1 is a Conv."""
    weight = view.constant(1)
    summed = order.rank - 1
    if weight is None or weight.ndim != 2 or view.dtype(0) != ir.DataType.FLOAT:
        return Refusal("MatMul multiplies along the last axes, which must stay in place")
    if order.rank not in CONVOLVED_RANKS or order.position(summed) != 1:
        return Refusal("MatMul multiplies along the last axes; Conv would along axis 1")
    windows = weight.T.reshape(*weight.shape[::-1], *(1,) * (summed - 1))
    return lead_only(view, order, Changes(constants={1: windows}, op_type="Conv"))
