"""What the form of a product takes beyond the product itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

import onnx_ir as ir

from relayout.graph.read import NodeView, constant_of, is_op, rank_of, shape_of
from relayout.layout.transport import Changes
from relayout.ops.measure import bytes_of, lengths_of
from relayout.targets.ort import CONTRIB_DOMAIN, FUSED_MATMUL
from relayout.targets.prices.table import RuntimePrices

PRODUCTS = frozenset({("", "MatMul"), ("", "Gemm"), (CONTRIB_DOMAIN, FUSED_MATMUL)})


def form_price(
    view: NodeView, changes: Changes, prices: RuntimePrices, dims: Mapping[str, int]
) -> int:
    """Nanoseconds that a product takes longer in this form than as rows times columns.

    Rows of the first factor are gathered if it is transposed; a constant is packed when the model
    is loaded only if it is the second factor; columns are computed several at once; and what has
    flags, or its constant first, takes in no bias.
    """
    node = view.node
    if (node.domain, node.op_type) not in PRODUCTS:
        return 0
    first = shape_of(node.inputs[0]) if node.inputs else None
    if not first:
        return 0
    operands = _operands(node, changes)
    elements = prod(lengths_of(first, dims))
    macs = elements * _columns(view, dims)
    longer = prices.columns.nanoseconds(_columns_written(view, changes, dims), macs)
    if _flag(view, changes, "transA"):
        longer += prices.transposed_factor.nanoseconds(elements, macs)
    is_turned = _has_constant_first(operands)
    if is_turned:
        longer += prices.constant_factor.nanoseconds(elements, macs)
    becomes = changes.op_type or node.op_type
    if is_turned or becomes == FUSED_MATMUL:
        longer += _lost_bias_price(node, prices, dims)
    return longer


def has_constant_first(node: ir.Node, changes: Changes) -> bool:
    """Whether a product of more than two matrices has a constant as its first factor."""
    if (node.domain, node.op_type) != ("", "MatMul") or rank_of(node.outputs[0]) == 2:
        return False
    return _has_constant_first(_operands(node, changes))


def _has_constant_first(operands: Sequence[ir.Value | None]) -> bool:
    return len(operands) > 1 and _is_constant(operands[0]) and not _is_constant(operands[1])


def _lost_bias_price(node: ir.Node, prices: RuntimePrices, dims: Mapping[str, int]) -> int:
    """Nanoseconds to add a constant that the product does not take in; where it is one already
    in this form, the Add counts as a kernel by itself.
    """
    passed = prices.stream(2 * bytes_of(node.outputs[0], dims))
    if has_bias(node):
        return prices.node + passed
    return passed if _added_constant(node) is not None else 0


def _operands(node: ir.Node, changes: Changes) -> Sequence[ir.Value | None]:
    order = changes.operand_order
    if order is None:
        return node.inputs
    return [None if index is None else node.inputs[index] for index in order]


def _is_constant(value: ir.Value | None) -> bool:
    return constant_of(value) is not None


def _flag(view: NodeView, changes: Changes, name: str) -> bool:
    flag = changes.attributes.get(name, view.integer(name, 0))
    return bool(flag)


def _columns_written(view: NodeView, changes: Changes, dims: Mapping[str, int]) -> int:
    """How many columns the result has as it is written: with factors exchanged, the rows."""
    if changes.operand_order is None or changes.operand_order[:2] != (1, 0):
        return _columns(view, dims)
    first = shape_of(view.node.inputs[0])
    if not first or len(first) < 2:
        return 1
    axis = -1 if view.integer("transA", 0) else -2
    return lengths_of(first, dims)[axis]


def _columns(view: NodeView, dims: Mapping[str, int]) -> int:
    """How many columns the second factor has."""
    second = shape_of(view.node.inputs[1])
    if not second or len(second) < 2:
        return 1
    axis = -2 if view.integer("transB", 0) else -1
    return lengths_of(second, dims)[axis]


def has_bias(node: ir.Node) -> bool:
    """Whether the runtime makes one operator of the product and an Add behind it."""
    bias = _added_constant(node)
    shape = None if bias is None else shape_of(bias)
    return _is_constant(node.inputs[1]) and shape is not None and len(shape) == 1


def _added_constant(node: ir.Node) -> ir.Value | None:
    """The constant that the only reader of a product adds to it, if it does."""
    result = node.outputs[0]
    readers = [reader for reader, _ in result.uses()]
    if len(readers) != 1 or not is_op(readers[0], "Add"):
        return None
    others = [value for value in readers[0].inputs if value is not result]
    return others[0] if others and _is_constant(others[0]) else None
