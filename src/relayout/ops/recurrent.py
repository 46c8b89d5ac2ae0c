"""Recurrent networks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from relayout.layout.permutation import Permutation
from relayout.layout.transport import Changes, Refusal, Transport
from relayout.ops.facts import OpFacts
from relayout.ops.kernels import OPAQUE
from relayout.ops.rule import OpRule

if TYPE_CHECKING:
    from relayout.graph.read import NodeView

LAYOUT_VERSION = 14
"""The opset that lets the batch come first, by attribute `layout`."""

BATCH_SWAP = Permutation.of(1, 0, 2)
"""Exchanges the batch with the time of X, and with the direction of a state."""

BATCH_TO_SEQUENCE = Permutation.of(1, 2, 0, 3)
"""Takes Y from batch, time, direction, hidden to time, direction, batch, hidden."""

INITIAL_STATES = (5, 6)


def recurrent(view: NodeView, order: Permutation) -> Transport | Refusal:
    """The attribute `layout` sets which of batch and time comes first, for all tensors at once."""
    if view.version < LAYOUT_VERSION:
        return Refusal(f"{view.op_type} has one fixed order before opset {LAYOUT_VERSION}")
    if order != BATCH_SWAP:
        return Refusal(f"{view.op_type} can only exchange batch and time")
    if not view.integer("layout", 0):
        return Refusal(f"runtimes have {view.op_type} with time first only, whatever ONNX allows")
    inputs = tuple(
        BATCH_SWAP if index in (0, *INITIAL_STATES) and view.has(index) else None
        for index in range(view.arity)
    )
    results = (BATCH_TO_SEQUENCE, BATCH_SWAP, BATCH_SWAP)
    outputs = tuple(
        result if value.name else None
        for value, result in zip(view.node.outputs, results, strict=False)
    )
    return Transport(inputs, outputs, Changes({"layout": 0}))


def pull_recurrent(view: NodeView, result: Permutation) -> Permutation | Refusal:
    if result.is_identity:
        return Permutation.identity(BATCH_SWAP.rank)
    if result == BATCH_TO_SEQUENCE and view.integer("layout", 0):
        return BATCH_SWAP
    return Refusal(f"{view.op_type} can only exchange batch and time")


FACTS = (OpFacts(("RNN", "GRU", "LSTM"), OpRule(recurrent, pull_recurrent), kernel=OPAQUE),)
