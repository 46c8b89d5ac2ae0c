"""What reducing axes takes where the innermost one is kept."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from relayout.graph.read import NodeView, Shape, is_op, shape_of
from relayout.layout.permutation import Permutation
from relayout.layout.shuffle import StoredOrder
from relayout.layout.transport import Refusal
from relayout.ops.measure import lengths_of
from relayout.ops.named_axes import reduced_axes
from relayout.targets.prices.table import RuntimePrices


def reduction_price(
    view: NodeView, order: StoredOrder | None, prices: RuntimePrices, dims: Mapping[str, int]
) -> int:
    """Nanoseconds that a reduction takes longer if its operand is stored in this order."""
    if not _may_reduce(view):
        return 0
    shape = shape_of(view.node.inputs[0]) if view.node.inputs else None
    axes = _axes(view, shape) if shape else ()
    if not shape or not axes:
        return 0
    lengths = lengths_of(shape, dims)
    stored = order if isinstance(order, Permutation) else Permutation.identity(len(shape))
    innermost = [axis for axis in stored if lengths[axis] != 1][-1:]
    is_across = bool(innermost) and innermost[0] not in axes
    return prices.reduced_across.nanoseconds(prod(lengths), 0) if is_across else 0


def _may_reduce(view: NodeView) -> bool:
    return view.op_type.startswith(("Reduce", "Global")) and not view.node.domain


def _axes(view: NodeView, shape: Shape) -> tuple[int, ...]:
    """The axes that are reduced; none where the operator does something else."""
    if is_op(view.node, "GlobalAveragePool", "GlobalMaxPool"):
        return tuple(range(2, len(shape)))
    axes = reduced_axes(view, len(shape)) if view.op_type.startswith("Reduce") else ()
    return () if isinstance(axes, Refusal) else axes
