"""A node with what is known from it about the layouts of the values it touches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import onnx_ir as ir

from relayout.graph.read import NodeView, is_op, perm_of
from relayout.graph.region import KERNEL_DOMAIN
from relayout.layout.layout import Colour, Layout, channels_first, channels_last
from relayout.layout.permutation import Permutation
from relayout.ops.known_layouts import carried, coloured, known_colours
from relayout.ops.registry import facts_named
from relayout.targets.channels_last import KERNELS

Pair: TypeAlias = tuple[ir.Value, Colour]


@dataclass(frozen=True, slots=True)
class ColouredNode:
    """A node with what is known from it: colours by itself, or which values are coloured alike."""

    view: NodeView
    known: Sequence[Pair]
    alike: Sequence[ir.Value]
    order: Permutation | None
    """The order of a Transpose."""

    @classmethod
    def by(cls, view: NodeView) -> ColouredNode:
        known = _kernel_colours(view) or known_colours(view)
        order = perm_of(view.node) if is_op(view.node, "Transpose") else None
        return cls(view, known, carried(view) if not known else (), order)

    @property
    def operands(self) -> list[ir.Value]:
        return [value for value in self.view.node.inputs if value is not None]

    @property
    def passes(self) -> bool:
        """Whether it is agnostic: its results have the axes of its operands."""
        return bool(self.alike) or self.order is not None

    @property
    def relabels(self) -> bool:
        """Whether nothing follows from it: its results have axes of their own, as of a Reshape."""
        return not self.passes and not self.known

    @property
    def layout(self) -> Layout | None:
        """The layout in which a known node reads features; None for a product of matrices."""
        return self.known[0][1].layout if self.known else None


def _kernel_colours(view: NodeView) -> list[Pair]:
    """The colours that an operator of the domain relayout, which reads channels last, fixes."""
    kernel = KERNELS.get(view.op_type) if view.node.domain == KERNEL_DOMAIN else None
    if kernel is None:
        return []
    layouts = {0: channels_last(kernel.rank)}
    weight = facts_named("", kernel.operator.op_type).layout.weight
    if weight is not None:
        operand, axes = weight
        standard = Layout(axes + channels_first(kernel.rank).axes[2:])
        layouts[operand] = standard.stored(kernel.weight_order)
    return coloured(view, layouts)
