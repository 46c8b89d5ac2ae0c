"""Normalisations that are written out, and that ONNX Runtime makes one operator of.

It does where they normalise the innermost axis and their scale has one axis; along any other axis
each of their nodes is a kernel that goes through the tensor.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import onnx_ir as ir

from relayout.graph.read import NodeView, constant_of, is_op, rank_of
from relayout.layout.permutation import Permutation
from relayout.layout.shuffle import StoredOrder
from relayout.targets.neighbours import maker_of, only_reader_of
from relayout.targets.ort import FUSED_TYPES
from relayout.targets.parted import Parted

NOT_ANOTHER_PASS = 4
"""Of its nodes: one goes through the tensor anyway, two means and the root write little."""


@dataclass(frozen=True, slots=True)
class WrittenNorm:
    """The nodes of a normalisation around the mean of its squares."""

    nodes: tuple[ir.Node, ...]
    """Those that read or write the whole tensor, and the mean of squares among them."""
    operand: ir.Value
    """What is squared."""
    axis: int
    """Counted from the front; -1 where the axes are not counted and it is the innermost."""
    has_plain_parameters: bool
    """Whether scale and bias have one axis each."""

    @property
    def is_one_kernel(self) -> bool:
        """Whether the runtime makes one operator of it as it stands."""
        is_innermost = self.axis + 1 == (rank_of(self.operand) or 0)
        is_float = self.operand.dtype in FUSED_TYPES
        return is_innermost and self.has_plain_parameters and is_float

    def stays_one_kernel(self, order: StoredOrder | None) -> bool:
        """Whether it is one, with its operand stored in this order."""
        if not self.is_one_kernel:
            return False
        return not isinstance(order, Permutation) or order.axes[-1] == self.axis


def written_norm(squares: ir.Node) -> WrittenNorm | None:
    """The normalisation that divides by the root of this mean of squares, if one does."""
    if not is_op(squares, "ReduceMean"):
        return None
    power = maker_of(squares.inputs[0], "Pow")
    operand = None if power is None else power.inputs[0]
    axis = _reduced_axis(squares, rank_of(operand))
    root = _after(squares, "Add", "Sqrt", "Div")
    if power is None or operand is None or axis is None or not root:
        return None
    if root[-1].inputs[0] is not operand:
        return None
    scale = _with_constant(root[-1], "Mul")
    if scale is None:
        return None
    centred = _centred(operand, scale, axis)
    nodes = (*centred, power, squares, *root, scale)
    return WrittenNorm(nodes, operand, axis, _have_one_axis(scale, *centred[2:]))


def norms_of_one_kernel(graph: ir.Graph) -> Iterator[tuple[ir.Node, ...]]:
    """The nodes of each written normalisation that the runtime makes one operator of."""
    norms = (written_norm(node) for node in graph)
    return (norm.nodes for norm in norms if norm is not None and norm.is_one_kernel)


def joined_norms(graph: ir.Graph) -> int:
    """How many written normalisations of a graph the runtime makes one operator of."""
    return sum(1 for _ in norms_of_one_kernel(graph))


def parted_norm(view: NodeView, order: StoredOrder | None) -> Parted | None:
    """What a written normalisation takes beyond one operator, with its operand in this order.

    Told of its mean of squares. Where it is not one operator as it stands, its nodes count as
    kernels by themselves.
    """
    norm = written_norm(view.node)
    if norm is None or norm.stays_one_kernel(order):
        return None
    kernels = len(norm.nodes) - 1 if norm.is_one_kernel else 0
    return Parted(kernels, len(norm.nodes) - NOT_ANOTHER_PASS, norm.operand)


def _centred(operand: ir.Value, scale: ir.Node, axis: int) -> tuple[ir.Node, ...]:
    """The mean that is subtracted first and the bias that is added last, if both are there."""
    less = maker_of(operand, "Sub")
    mean = None if less is None else maker_of(less.inputs[1], "ReduceMean")
    bias = _with_constant(scale, "Add")
    if less is None or mean is None or bias is None or mean.inputs[0] is not less.inputs[0]:
        return ()
    is_same = _reduced_axis(mean, rank_of(mean.inputs[0]) or rank_of(operand)) == axis
    return (mean, less, bias) if is_same else ()


def _after(node: ir.Node, *op_types: str) -> tuple[ir.Node, ...]:
    """The nodes that follow, each the only reader of the one before; none if they do not."""
    found: list[ir.Node] = []
    for op_type in op_types:
        reader = only_reader_of(node.outputs[0], op_type)
        if reader is None:
            return ()
        found.append(reader)
        node = reader
    return tuple(found)


def _with_constant(node: ir.Node, op_type: str) -> ir.Node | None:
    """The only reader of a node, if it is this operator and has a constant beside it."""
    reader = only_reader_of(node.outputs[0], op_type)
    return reader if reader is not None and _constant_rank(reader) is not None else None


def _constant_rank(node: ir.Node) -> int | None:
    ranks = (rank_of(value) for value in node.inputs if constant_of(value) is not None)
    return next(ranks, None)


def _have_one_axis(*nodes: ir.Node) -> bool:
    return all(_constant_rank(node) == 1 for node in nodes)


def _reduced_axis(node: ir.Node, rank: int | None) -> int | None:
    """The axis that a node reduces, if it is one and known."""
    attribute = node.attributes.get("axes")
    named = constant_of(node.inputs[1]) if len(node.inputs) > 1 else None
    if attribute is not None and not attribute.is_ref():
        axes = list(attribute.as_ints())
    elif named is not None:
        axes = [int(axis) for axis in named.numpy().reshape(-1)]
    else:
        return None
    if len(axes) != 1:
        return None
    if rank:
        return axes[0] % rank
    return axes[0] if axes[0] == -1 else None
