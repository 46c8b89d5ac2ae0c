"""A convolution with windows of one element is a product of matrices, and the reverse."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import onnx_ir as ir

from relayout.graph.read import constant_of, is_op
from relayout.layout.permutation import Permutation
from relayout.layout.transport import Changes, Refusal, Step, Transport
from relayout.ops.rule import lead_only

if TYPE_CHECKING:
    from relayout.graph.read import NodeView

CONVOLVED_RANKS = range(4, 6)
"""Of fewer axes a product reads channels in place 1 itself, of more no runtime convolves."""


def convolution_as_product(view: NodeView, order: Permutation) -> Transport | Refusal:
    """Conv with its channels stored last, or second to last, is a MatMul by its weight."""
    if not _is_pointwise(view):
        return Refusal("Conv takes its batch from axis 0 and its channels from axis 1")
    from_end = order.rank - order.position(1)
    if from_end > 2:
        return Refusal("Conv takes its channels from axis 1; MatMul would from the last two")
    constant = view.constant(1)
    if constant is None:
        return _by_quantised_weight(view, order, from_end)
    weight = constant.reshape(constant.shape[:2])
    factors = (0, np.ascontiguousarray(weight.T)) if from_end == 1 else (weight, 0)
    if not view.has(2):
        return lead_only(view, order, Changes(steps=(Step("MatMul", factors),)))
    changes = Changes(
        unsqueezes={2: (1,)} if from_end == 2 else {},
        steps=(Step("MatMul", factors, "product"), Step("Add", ("product", 2))),
        extra_passes=1,
    )
    return lead_only(view, order, changes)


def _by_quantised_weight(view: NodeView, order: Permutation, from_end: int) -> Transport | Refusal:
    """A quantised weight is stored with its windows as batch axes, so that its scales follow."""
    producer = view.node.inputs[1].producer() if view.node.inputs[1] is not None else None
    if producer is None or not is_op(producer, "DequantizeLinear") or view.has(2):
        return Refusal("Conv takes its batch from axis 0 and its channels from axis 1")
    if constant_of(producer.inputs[0]) is None:
        return Refusal("Conv has a weight that the run computes")
    windows, columns_first = range(2, order.rank), from_end == 1
    stored = Permutation((*windows, *((1, 0) if columns_first else (0, 1))))
    changes = Changes(
        attributes=dict.fromkeys(view.node.attributes),
        op_type="MatMul",
        operand_order=None if columns_first else (1, 0),
    )
    return Transport((order, stored), (order,), changes)


def _is_pointwise(view: NodeView) -> bool:
    """Whether a Conv multiplies by one matrix, of one row per result channel, at every place."""
    weight = view.shape(1) if view.dtype(0) in {ir.DataType.FLOAT, ir.DataType.DOUBLE} else None
    if weight is None or any(length != 1 for length in weight[2:]):
        return False
    moves = (*(view.ints("strides") or ()), view.integer("group", 1))
    return all(step == 1 for step in moves) and not any(view.ints("pads") or ())


def product_as_convolution(view: NodeView, order: Permutation) -> Transport | Refusal:
    """MatMul by a constant matrix with the summed axis stored in place 1 is a Conv."""
    weight = view.constant(1)
    summed = order.rank - 1
    if weight is None or weight.ndim != 2 or view.dtype(0) != ir.DataType.FLOAT:
        return Refusal("MatMul multiplies along the last axes, which must stay in place")
    if order.rank not in CONVOLVED_RANKS or order.position(summed) != 1:
        return Refusal("MatMul multiplies along the last axes; Conv would along axis 1")
    windows = np.ascontiguousarray(weight.T).reshape(*weight.shape[::-1], *(1,) * (summed - 1))
    return lead_only(view, order, Changes(constants={1: windows}, op_type="Conv"))
