"""A convolution with windows of one element, a quantised weight and a bias, as a product."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from relayout.graph.read import constant_of, is_op
from relayout.layout.permutation import Permutation
from relayout.layout.transport import Changes, Step, Transport

if TYPE_CHECKING:
    from relayout.graph.read import NodeView

PRODUCT, SUM = "MatMul", "Add"


def biased_convolution_as_product(
    view: NodeView, operand: int, order: Permutation
) -> Sequence[Transport]:
    """With its channels stored last, or second to last, it is a MatMul, to which the bias is added.

    The windows of the weight become batch axes, so that its scales follow.
    """
    if operand != 0 or not view.has(2) or not _has_quantised_matrix(view):
        return ()
    from_end = order.rank - order.position(1)
    if from_end > 2:
        return ()
    windows, is_last = range(2, order.rank), from_end == 1
    stored = Permutation((*windows, *((1, 0) if is_last else (0, 1))))
    changes = Changes(
        unsqueezes={} if is_last else {2: (1,)},
        steps=(
            Step(PRODUCT, (0, 1) if is_last else (1, 0), "product"),
            Step(SUM, ("product", 2)),
        ),
        extra_passes=1,
    )
    return (Transport((order, stored, None), (order,), changes),)


def _has_quantised_matrix(view: NodeView) -> bool:
    """Whether a Conv multiplies by one matrix, which is a quantised constant, at every place."""
    weight, windows = view.node.inputs[1], view.shape(1)
    quantiser = None if weight is None else weight.producer()
    if quantiser is None or not is_op(quantiser, "DequantizeLinear") or windows is None:
        return False
    if constant_of(quantiser.inputs[0]) is None or any(length != 1 for length in windows[2:]):
        return False
    moves = (*(view.ints("strides") or ()), view.integer("group", 1))
    return all(step == 1 for step in moves) and not any(view.ints("pads") or ())
