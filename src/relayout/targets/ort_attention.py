"""Attentions: those that ONNX Runtime makes one operator of, and what its operator copies."""

from __future__ import annotations

from collections.abc import Mapping

import onnx_ir as ir

from relayout.graph.read import NodeView, constant_of, perm_of, shape_of
from relayout.layout.moves import Move
from relayout.layout.permutation import Permutation
from relayout.ops.measure import item_bytes, lengths_of
from relayout.targets.neighbours import maker_of, only_reader_of
from relayout.targets.ort import CONTRIB_DOMAIN
from relayout.targets.prices.table import RuntimePrices

MULTI_HEAD = "MultiHeadAttention"
HEADS_FORWARD = Permutation.of(0, 2, 1, 3)
HEADS_LAST = Permutation.of(0, 2, 3, 1)
PROJECTED = ("Transpose", "Reshape", "Add", "MatMul")


def copies_price(view: NodeView, prices: RuntimePrices, dims: Mapping[str, int]) -> int:
    """Nanoseconds in which MultiHeadAttention brings heads forward, and back in its result."""
    node = view.node
    if (node.domain, node.op_type) != (CONTRIB_DOMAIN, MULTI_HEAD):
        return 0
    heads = view.integer("num_heads", 1)
    moved = (*node.inputs[:3], node.outputs[0])
    return sum(_heads_moved(value, heads, prices, dims) for value in moved)


def _heads_moved(
    value: ir.Value | None, heads: int, prices: RuntimePrices, dims: Mapping[str, int]
) -> int:
    shape = None if value is None else shape_of(value)
    if value is None or value.dtype is None or shape is None or len(shape) != 3:
        return 0
    batch, rows, features = lengths_of(shape, dims)
    move = Move.of((batch, rows, heads, features // heads), HEADS_FORWARD)
    return prices.transpose(move, item_bytes(value.dtype)) - prices.node


def taken_in(softmax: ir.Node) -> list[ir.Node]:
    """The nodes that one Attention stands for, if the runtime recognises one around a Softmax.

    It does where three projections of one tensor meet, scores are scaled and get a mask that is
    computed from an input of the model as (1 - mask) * c, and the heads are joined behind it.
    """
    masked = maker_of(softmax.inputs[0], "Add")
    scaled = None if masked is None else maker_of(masked.inputs[0], "Div", "Mul")
    scores = None if scaled is None else maker_of(scaled.inputs[0], "MatMul")
    weighted = only_reader_of(softmax.outputs[0], "MatMul")
    if masked is None or scaled is None or scores is None or weighted is None:
        return []
    if not _is_mask(masked.inputs[1]):
        return []
    chains = [
        _projection(scores.inputs[0], HEADS_FORWARD),
        _projection(scores.inputs[1], HEADS_LAST),
        _projection(weighted.inputs[1], HEADS_FORWARD),
    ]
    joined = only_reader_of(weighted.outputs[0], "Transpose")
    merged = None if joined is None else only_reader_of(joined.outputs[0], "Reshape")
    sources = {chain[-1].inputs[0] for chain in chains if chain}
    if not all(chains) or len(sources) != 1 or joined is None or merged is None:
        return []
    projections = [node for chain in chains for node in chain]
    return [*projections, scores, scaled, masked, weighted, joined, merged]


def _projection(value: ir.Value | None, order: Permutation) -> list[ir.Node]:
    """The nodes from a product with a constant to heads in some order; none if it is not that."""
    chain: list[ir.Node] = []
    for op_type in PROJECTED:
        node = maker_of(value, op_type)
        if node is None:
            return []
        chain.append(node)
        value = next((each for each in node.inputs if constant_of(each) is None), None)
    is_constant = constant_of(chain[-1].inputs[1]) is not None
    return chain if perm_of(chain[0]) == order and is_constant else []


def _is_mask(value: ir.Value | None) -> bool:
    scaled = maker_of(value, "Mul")
    inverted = None if scaled is None else maker_of(scaled.inputs[0], "Sub")
    mask = None if inverted is None else inverted.inputs[1]
    while (node := maker_of(mask, "Cast", "Unsqueeze")) is not None:
        mask = node.inputs[0]
    return inverted is not None and mask is not None and mask.is_graph_input()
