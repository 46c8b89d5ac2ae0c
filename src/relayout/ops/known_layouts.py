"""What is known from operators about the layouts of the tensors they touch.

Convolutions, pools and the like fix what each axis is, matrix products that their operands are not
features; operators that treat all axes alike carry a layout from operand to result; the results of
all others have a layout of their own.
"""

from __future__ import annotations

from collections.abc import Mapping

import onnx_ir as ir

from relayout.graph.read import NodeView, rank_of, shape_of
from relayout.layout.layout import Colour, Layout, channels_first, plain_class
from relayout.ops.facts import KnownLayout
from relayout.ops.registry import facts_of

SPATIAL_RANKS = (3, 4, 5)


def known_colours(view: NodeView) -> list[tuple[ir.Value, Colour]]:
    """The colours that an operator fixes for its operands and results."""
    layout = facts_of(view.node).layout
    if layout.known is KnownLayout.PLAIN:
        return coloured(view, {})
    rank = view.rank(0)
    if layout.known is None or rank not in SPATIAL_RANKS:
        return []
    layouts = {0: channels_first(rank)}
    if layout.weight is not None:
        operand, axes = layout.weight
        layouts[operand] = Layout(axes + layouts[0].axes[2:])
    return coloured(view, layouts)


def coloured(view: NodeView, layouts: Mapping[int, Layout]) -> list[tuple[ir.Value, Colour]]:
    """The colours of an operator's operands, with these layouts, and of results like operand 0."""
    operands = [(v, layouts.get(i)) for i, v in enumerate(view.node.inputs) if v is not None]
    results = [(value, layouts.get(0)) for value in view.node.outputs]
    return [
        (value, plain(value) if layout is None else _of_rank(layout, value))
        for value, layout in (*operands, *results)
    ]


def _of_rank(layout: Layout, value: ir.Value) -> Colour:
    return Colour.named(layout) if rank_of(value) in {None, layout.rank} else plain(value)


def preferred(view: NodeView) -> Colour | None:
    """The colour of an operand nothing else is known about, if this consumer prefers one."""
    rank = view.rank(0)
    if not facts_of(view.node).layout.prefers_channels_first or rank not in SPATIAL_RANKS:
        return None
    return Colour.named(channels_first(rank))


def carried(view: NodeView) -> list[ir.Value]:
    """The operands and results that have the same axes, those of the first result."""
    if not facts_of(view.node).layout.carries:
        return []
    rank = view.result_rank(0)
    operands = [v for v in view.node.inputs if v is not None and rank_of(v) == rank]
    if rank is None or not operands:
        return []
    return [*operands, *(value for value in view.node.outputs if rank_of(value) == rank)]


def plain(value: ir.Value) -> Colour:
    """The colour of a value by its shape alone."""
    shape = shape_of(value)
    return Colour(plain_class(len(shape or ()), shape[0] if shape else None))
