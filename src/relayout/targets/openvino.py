"""What OpenVINO on a CPU makes of operators, as far as the choice of layouts should know it.

A product of an activation and a weight becomes a fully connected layer with packed weights if the
weight comes second and the activation is read as it lies; else it is a plain product, which packs
the weight in each run, or copies the activation. A product of two activations, the scores or the
result of an attention, is joined with the Softmax and with the Transposes of heads beside it, where
they stand as exporters write them. Parts along the outermost axis are views; others are copied.
Views and arithmetic on lengths take next to nothing. Images are resized channels first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import onnx_ir as ir

from relayout.graph.read import NodeView, constant_of, is_op, perm_of
from relayout.layout.permutation import Permutation
from relayout.layout.transport import Changes, Refusal, Transport
from relayout.ops.matmul import PLAIN, Dialect, FactorReading, readings_by_flags
from relayout.ops.measure import bytes_of
from relayout.ops.movement import resize, resized_axes, upsample
from relayout.ops.product import matmul_rule, write_gemm, write_matmul
from relayout.ops.rule import OpRule
from relayout.ops.vector_product import product_rule
from relayout.targets.prices.table import RuntimePrices

JOINED = Refusal("OpenVINO joins products of activations with what stands beside them")

SPREAD = Refusal("OpenVINO is slow at images with their channels last")

HEADS = frozenset(((0, 2, 1, 3), (0, 2, 3, 1), (0, 1, 3, 2), (0, 2, 1)))
"""Transposes that are joined with a product of activations beside them."""
PARTS = ("Split",)
MOST_NORMALISED = 3
"""The axes up to which a normalisation along the last one is one kernel; beyond it is several."""
WHOLE = frozenset((ir.DataType.INT64, ir.DataType.INT32, ir.DataType.BOOL))
"""The types of lengths and of arithmetic on them."""


def has_weight(view: NodeView) -> bool:
    """Whether one factor of a product is a constant."""
    return any(view.constant(index) is not None for index in (0, 1))


def may_exchange(view: NodeView) -> bool:
    """Whether the factors of a product may change places: a weight must not come first."""
    return view.constant(1) is None


def write_product(view: NodeView, first: FactorReading, second: FactorReading) -> Changes | None:
    """A product that reads its activation as it lies."""
    return write_matmul(view, first, second) if first == PLAIN else None


def write_flags(view: NodeView, first: FactorReading, second: FactorReading) -> Changes | None:
    return write_gemm(view, first, second) if first == PLAIN else None


def _unless_joined(rule: OpRule) -> OpRule:
    """The rule of a product, for those with a weight."""

    def transport(view: NodeView, order: Permutation) -> Transport | Refusal:
        return rule.transport(view, order) if has_weight(view) else JOINED

    def pull(view: NodeView, result: Permutation) -> Permutation | Refusal:
        return rule.pull(view, result) if has_weight(view) else JOINED

    def joint(view: NodeView, operand: int, order: Permutation) -> list[Transport]:
        return list(rule.joint(view, operand, order)) if has_weight(view) else []

    return replace(rule, transport=transport, pull=pull, joint=joint)


def _spatial_inside(rule: OpRule) -> OpRule:
    """The rule of a Resize, in orders that keep the resized axes innermost.

    With channels last OpenVINO takes 2 to 20 times as long between pixels, up to 8 times for the
    nearest ones.
    """

    def transport(view: NodeView, order: Permutation) -> Transport | Refusal:
        resized = {order.position(axis) for axis in resized_axes(view, order.rank)}
        is_inside = resized <= set(range(order.rank - len(resized), order.rank))
        return rule.transport(view, order) if order.is_identity or is_inside else SPREAD

    return replace(rule, transport=transport)


MATMUL = Dialect(write_product, can_exchange=may_exchange)
GEMM = Dialect(write_flags, readings_by_flags, can_exchange=may_exchange)

RULES: dict[tuple[str, str], OpRule] = {
    ("", "Resize"): _spatial_inside(OpRule(resize)),
    ("", "Upsample"): _spatial_inside(OpRule(upsample)),
    ("", "MatMul"): _unless_joined(matmul_rule(MATMUL, convolves=False)),
    ("", "Gemm"): _unless_joined(product_rule(GEMM)),
}


def absorbed(graph: ir.Graph) -> set[ir.Node]:
    """The nodes of a graph that take next to nothing."""
    return {node for node in graph if _is_absorbed(node)}


def _is_absorbed(node: ir.Node) -> bool:
    if is_op(node, "Transpose"):
        return _is_joined(node)
    is_view = is_op(node, "Reshape", "Squeeze", "Unsqueeze", "Flatten", "Identity")
    return is_view or all(result.dtype in WHOLE for result in node.outputs)


def extra_price(view: NodeView, prices: RuntimePrices, dims: Mapping[str, int]) -> int:
    """Nanoseconds of parts that are copied, and of normalisations that are several kernels."""
    node, source = view.node, view.node.inputs[0] if view.node.inputs else None
    if source is None:
        return 0
    if is_op(node, "LayerNormalization") and (view.rank(0) or 0) > MOST_NORMALISED:
        return 2 * prices.node + prices.stream(4 * bytes_of(source, dims))
    if is_op(node, *PARTS) and not _is_outermost(view):
        return prices.stream(2 * bytes_of(source, dims))
    return 0


def _is_joined(transpose: ir.Node) -> bool:
    """Whether a Transpose is a part of the product beside it."""
    order = perm_of(transpose)
    if order is None or order.axes not in HEADS:
        return False
    readers = [reader for reader, _ in transpose.outputs[0].uses()]
    before = transpose.inputs[0].producer() if transpose.inputs[0] is not None else None
    neighbours = readers if len(readers) == 1 else []
    return any(_multiplies_activations(node) for node in (*neighbours, before))


def _multiplies_activations(node: ir.Node | None) -> bool:
    if node is None or not is_op(node, "MatMul"):
        return False
    return all(constant_of(value) is None for value in node.inputs)


def _is_outermost(view: NodeView) -> bool:
    """Whether all axes before the one that is split have one element."""
    shape = view.shape(0)
    if shape is None:
        return True
    axis = view.integer("axis", 0) % max(1, len(shape))
    return all(length == 1 for length in shape[:axis])
