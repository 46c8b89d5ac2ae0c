"""Recurrent networks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from relayout.layout.permutation import Permutation
from relayout.layout.transport import Changes, Refusal, Transport
from relayout.ops.rule import OpRule

if TYPE_CHECKING:
    from relayout.graph.read import NodeView

LAYOUT_VERSION = 14
"""The opset that lets the batch come first, by attribute `layout`."""

BATCH_SWAP = Permutation.of(1, 0, 2)
"""Exchanges the batch with the time of X, and with the direction of a state."""

SEQUENCE_TO_BATCH = Permutation.of(2, 0, 1, 3)
"""Takes Y from time, direction, batch, hidden to batch, time, direction, hidden."""

INITIAL_STATES = (5, 6)


def recurrent(view: NodeView, order: Permutation) -> Transport | Refusal:
    """The attribute `layout` says which of batch and time comes first, for all tensors at once."""
    if view.version < LAYOUT_VERSION:
        return Refusal(f"{view.op_type} has one fixed order before opset {LAYOUT_VERSION}")
    if order != BATCH_SWAP:
        return Refusal(f"{view.op_type} can only exchange batch and time")
    inputs = tuple(
        BATCH_SWAP if index in (0, *INITIAL_STATES) and view.has(index) else None
        for index in range(view.arity)
    )
    results = (_sequence_order(view), BATCH_SWAP, BATCH_SWAP)
    outputs = tuple(
        result if value.name else None
        for value, result in zip(view.node.outputs, results, strict=False)
    )
    return Transport(inputs, outputs, Changes({"layout": 1 - view.integer("layout", 0)}))


def pull_recurrent(view: NodeView, result: Permutation) -> Permutation | Refusal:
    if result.is_identity:
        return Permutation.identity(BATCH_SWAP.rank)
    if result == _sequence_order(view):
        return BATCH_SWAP
    return Refusal(f"{view.op_type} can only exchange batch and time")


def _sequence_order(view: NodeView) -> Permutation:
    return SEQUENCE_TO_BATCH.inverse() if view.integer("layout", 0) else SEQUENCE_TO_BATCH


RULES = (OpRule(("RNN", "GRU", "LSTM"), recurrent, pull_recurrent),)
