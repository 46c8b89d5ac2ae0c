"""Transposes that are written in another way: where that can be done, and what it takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import onnx_ir as ir

from relayout.graph.read import Shape, constant_of, is_op, perm_of, shape_of
from relayout.layout.move_class import MoveClass
from relayout.layout.moves import Move
from relayout.layout.permutation import Permutation
from relayout.ops.measure import item_bytes, lengths_of
from relayout.targets.prices.table import RuntimePrices

FLATTEN_TAKES_ANY_TYPE = 9
MEETING = ("Add", "Sub", "Mul", "Div")


def can_be_rewritten(shape: Shape, lengths: Sequence[int]) -> bool:
    """Whether Reshapes can be given the lengths, and axes that count as 1 are that long.

    At most one length is left to be found.
    """
    known = [length for length in shape if isinstance(length, int)]
    are_units = all(dim == 1 for dim, length in zip(shape, lengths, strict=True) if length == 1)
    return len(shape) - len(known) <= 1 and 0 not in known and are_units


def least_price(
    prices: RuntimePrices,
    shape: Shape,
    order: Permutation,
    item_bytes: float,
    dims: Mapping[str, int],
) -> int:
    """Nanoseconds of a Transpose, written in another way where that can be done and takes less."""
    lengths = lengths_of(shape, dims)
    price = prices.best_transpose if can_be_rewritten(shape, lengths) else prices.transpose
    return price(Move.of(lengths, order), item_bytes)


def is_better_kept(node: ir.Node, prices: RuntimePrices, dims: Mapping[str, int]) -> bool:
    """Whether a Transpose of rows meets another tensor, and takes less if it stays where it is.

    That takes two views behind it; moved through the operator it would become one with another
    Transpose, and together they would move element by element.
    """
    order, source, result = perm_of(node), node.inputs[0], node.outputs[0]
    shape = shape_of(source)
    if order is None or source is None or shape is None or source.dtype is None:
        return False
    if len(shape) != order.rank or constant_of(source) is not None or not _meets_another(result):
        return False
    lengths, size = lengths_of(shape, dims), item_bytes(source.dtype)
    move = Move.of(lengths, order)
    if move.kind is not MoveClass.ROWS or not can_be_rewritten(shape, lengths):
        return False
    return prices.transpose(move, size) + 2 * prices.view() < prices.scattered(move, size)


def _meets_another(value: ir.Value) -> bool:
    """Whether an operator reads it that works element by element on another tensor too."""
    readers = [reader for reader, _ in value.uses() if is_op(reader, *MEETING)]
    others = (each for reader in readers for each in reader.inputs if each is not value)
    return not value.is_graph_output() and any(constant_of(each) is None for each in others)
