"""What the form of a product takes beyond the product itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

import onnx_ir as ir

from relayout.graph.read import NodeView, constant_of, is_op, shape_of
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
    is loaded only if it is the second factor; and what has flags takes in no bias.
    """
    node = view.node
    first = shape_of(node.inputs[0]) if node.inputs else None
    if (node.domain, node.op_type) not in PRODUCTS or not first:
        return 0
    operands = _operands(node, changes)
    elements = prod(lengths_of(first, dims))
    macs = elements * _columns(view, dims)
    longer = 0
    if _flag(view, changes, "transA"):
        longer += prices.transposed_factor.nanoseconds(elements, macs)
    if len(operands) > 1 and _is_constant(operands[0]) and not _is_constant(operands[1]):
        longer += prices.constant_factor.nanoseconds(elements, macs)
    becomes = changes.op_type or node.op_type
    if becomes == FUSED_MATMUL and _has_bias(node):
        longer += prices.node + prices.stream(2 * bytes_of(node.outputs[0], dims))
    return longer


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


def _columns(view: NodeView, dims: Mapping[str, int]) -> int:
    """How many columns the second factor has."""
    second = shape_of(view.node.inputs[1])
    if not second or len(second) < 2:
        return 1
    axis = -2 if view.integer("transB", 0) else -1
    return lengths_of(second, dims)[axis]


def _has_bias(node: ir.Node) -> bool:
    """Whether the runtime makes one operator of the product and an Add behind it."""
    result = node.outputs[0]
    readers = [reader for reader, _ in result.uses()]
    if len(readers) != 1 or not is_op(readers[0], "Add") or not _is_constant(node.inputs[1]):
        return False
    others = [value for value in readers[0].inputs if value is not result]
    shape = shape_of(others[0]) if others else None
    return bool(others) and _is_constant(others[0]) and shape is not None and len(shape) == 1
