"""Images of other sizes: ONNX Runtime has other kernels for channels first and last."""

from __future__ import annotations

from relayout.graph.read import NodeView, is_op, shape_of
from relayout.layout.permutation import Permutation
from relayout.layout.shuffle import StoredOrder
from relayout.ops.movement import resized_axes
from relayout.targets.parted import Parted

IMAGE = 4
"""The axes of what it has a kernel for that walks all channels of a pixel at once."""
FEW = 16
"""Channels below which that kernel takes no less."""
BETWEEN_PIXELS, NEAREST_PIXELS = 2, 1
"""How many passes over the result take as long as what is lost in the other order."""


def parted_image(view: NodeView, order: StoredOrder | None) -> Parted | None:
    """What a Resize loses with its channels first if it interpolates, and else with them last."""
    node, result = view.node, view.node.outputs[0]
    shape = shape_of(result)
    if not is_op(node, "Resize", "Upsample") or shape is None or len(shape) != IMAGE:
        return None
    axes = order.axes if isinstance(order, Permutation) else range(IMAGE)
    resized = resized_axes(view, IMAGE)
    stored = [place for place, axis in enumerate(axes) if axis in resized]
    is_first = stored == [2, 3]
    mode = view.string("mode", "nearest")
    if mode == "linear" and is_first:
        channels = shape[axes[1]]
        is_wide = not isinstance(channels, int) or channels >= FEW
        return Parted(0, BETWEEN_PIXELS, result) if is_wide else None
    return Parted(0, NEAREST_PIXELS, result) if mode == "nearest" and stored == [1, 2] else None
