"""Over which elements an operator runs, and what that lets other operators do in its kernel."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import onnx_ir as ir

from relayout.graph.read import NodeView, Parameter, is_op
from relayout.layout.transport import Refusal
from relayout.ops.fusing import Fusing, is_shaped_at_run_time
from relayout.ops.kernels import Role, RowsRule
from relayout.ops.kind import Kind
from relayout.ops.registry import facts_in_any_layout, facts_of


@dataclass(frozen=True, slots=True)
class Iteration:
    role: Role
    axes: tuple[int, ...] = ()
    """The axes of operand 0 along which a row lies."""
    move: Hashable = None
    """Names the places to which a move puts elements."""
    streamed: tuple[int, ...] = ()
    """The operands that may be computed while the kernel reads them."""


def is_view(node: ir.Node) -> bool:
    """Whether a node only gives the elements it reads another shape, or the same one."""
    kernel = facts_of(node).kernel
    return kernel is not None and kernel.is_view


def iteration_of(view: NodeView, fusing: Fusing) -> Iteration:
    kernel = facts_in_any_layout(view.node).kernel
    if kernel is None or fusing.kind is Kind.OPAQUE or is_shaped_at_run_time(view, kernel):
        return Iteration(Role.OPAQUE)
    if kernel.move is not None:
        move = kernel.move(view)
        return Iteration(Role.GATHER) if move is None else Iteration(Role.MOVE, move=move)
    role = kernel.role or _role_of(fusing.kind)
    if kernel.rows is None:
        return Iteration(role, streamed=kernel.streamed)
    axes = _row_axes(view, kernel.rows)
    return Iteration(role, axes) if axes else Iteration(Role.COMPLEX)


def _role_of(kind: Kind) -> Role:
    if kind <= Kind.BROADCAST:
        return Role.POINTWISE
    return Role.GATHER if kind is Kind.INJECTIVE else Role.COMPLEX


def _row_axes(view: NodeView, rows: RowsRule) -> tuple[int, ...] | None:
    """The axes of operand 0 along which a row lies; None where they are not known."""
    rank = view.rank(0)
    return None if rank is None or view.unknown_attribute is not None else rows(view, rank)


COSTLY_WORK = 16
"""How many simple operations a costly one takes the time of."""


def work_per_element(node: ir.Node) -> int:
    """The simple operations that one element of a pointwise result takes."""
    kernel = facts_in_any_layout(node).kernel
    return COSTLY_WORK if kernel is not None and kernel.is_costly else 1


def is_exact(node: ir.Node) -> bool:
    """Whether computing a node again gives the same bits and costs no more than a read."""
    kernel = facts_in_any_layout(node).kernel
    return kernel is not None and kernel.is_exact


def is_zero_padding(view: NodeView) -> bool:
    """Whether a Pad only puts zeros around its operand, as a convolution can do by itself."""
    if not is_op(view.node, "Pad") or view.string("mode", "constant") != "constant":
        return False
    pads = Parameter("pads", 1).read_ints(view)
    filler = view.constant(2) if view.has(2) else None
    is_zero = not view.has(2) or (filler is not None and not filler.any())
    is_grown = pads is not None and not isinstance(pads, Refusal) and min(pads, default=-1) >= 0
    return is_zero and is_grown and view.node.attributes.get("value") is None
