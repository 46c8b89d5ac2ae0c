"""Lengths that ONNX Runtime's own products and attentions give: onnx does not infer those."""

from __future__ import annotations

from typing import TYPE_CHECKING

from relayout.layout.blocks import size_of
from relayout.ops.matmul import readings_by_flags

if TYPE_CHECKING:
    from collections.abc import Sequence

    from relayout.graph.read import Dim, NodeView, Shape
    from relayout.ops.lengths.entries import Entries, Known

MATRIX_RANK = 2
JOINED_HEADS, PARTED_HEADS = 3, 4
"""How many axes operands of an attention have, with the heads joined or parted."""


def of_fused_product(view: NodeView, _known: Known) -> Entries | None:
    """The lengths of a product that transposes its factors by flags."""
    factors = [_factor(view, index) for index in (0, 1)]
    left, right = factors
    if left is None or right is None:
        return None
    rank = max(len(left), len(right))
    batches = [(1,) * (rank - len(each)) + each[:-MATRIX_RANK] for each in (left, right)]
    batch = [_broadcast(*lengths) for lengths in zip(*batches, strict=True)]
    return _entries([*batch, left[-MATRIX_RANK], right[-1]])


def _factor(view: NodeView, index: int) -> Shape | None:
    """The lengths of a factor as it is multiplied."""
    shape = view.shape(index)
    if shape is None or len(shape) < MATRIX_RANK:
        return None
    return readings_by_flags(view)[index].stored(len(shape)).inverse().reorder(shape)


def _broadcast(one: Dim, other: Dim) -> Dim:
    if other in {one, 1}:
        return one
    if one == 1:
        return other
    return next((length for length in (one, other) if isinstance(length, int)), None)


def of_attention(view: NodeView, _known: Known) -> Entries | None:
    """The lengths of MultiHeadAttention with queries, keys and values of their own."""
    query, value = view.shape(0), view.shape(2)
    if query is None or value is None or len(query) != JOINED_HEADS:
        return None
    if len(value) == JOINED_HEADS:
        return _entries([*query[:2], value[2]])
    heads, depth = (value[1], value[3]) if len(value) == PARTED_HEADS else (None, None)
    if not isinstance(heads, int) or not isinstance(depth, int):
        return None
    return _entries([*query[:2], heads * depth])


def _entries(lengths: Sequence[Dim]) -> Entries:
    return tuple(None if length is None else size_of(length) for length in lengths)
