"""Images of other sizes: runtimes have other kernels for channels first and last."""

from __future__ import annotations

from collections.abc import Sequence

from relayout.graph.read import NodeView, is_op, rank_of, shape_of
from relayout.layout.permutation import Permutation
from relayout.layout.shuffle import StoredOrder
from relayout.ops.movement import resized_axes
from relayout.targets.parted import Parted

IMAGE = 4
"""The axes of what ONNX Runtime has a kernel for that walks all channels of a pixel at once."""
FEW = 16
"""Channels below which that kernel takes no less."""
BETWEEN_PIXELS, NEAREST_PIXELS = 2, 1
"""How many passes over the result take as long as what ONNX Runtime loses in the other order."""
BETWEEN_PIXELS_ELSEWHERE, NEAREST_PIXELS_ELSEWHERE = 40, 4
"""And with channels last what OpenVINO does, which takes up to 20 times as long then."""


def parted_in_ort(view: NodeView, order: StoredOrder | None) -> Parted | None:
    """What a Resize loses with its channels first if it interpolates, and else with them last."""
    stored, shape = _resized_places(view, order), shape_of(view.node.outputs[0])
    if stored is None or shape is None or len(shape) != IMAGE:
        return None
    result, mode = view.node.outputs[0], view.string("mode", "nearest")
    if mode == "linear" and stored == [2, 3]:
        channels = shape[_axes(order, IMAGE)[1]]
        is_wide = not isinstance(channels, int) or channels >= FEW
        return Parted(0, BETWEEN_PIXELS, result) if is_wide else None
    return Parted(0, NEAREST_PIXELS, result) if mode == "nearest" and stored == [1, 2] else None


def parted_elsewhere(view: NodeView, order: StoredOrder | None) -> Parted | None:
    """What a Resize loses with its channels last where runtimes have kernels for others alone."""
    stored, rank = _resized_places(view, order), rank_of(view.node.outputs[0])
    if not stored or rank is None or stored == [*range(rank - len(stored), rank)]:
        return None
    is_nearest = view.string("mode", "nearest") == "nearest"
    passes = NEAREST_PIXELS_ELSEWHERE if is_nearest else BETWEEN_PIXELS_ELSEWHERE
    return Parted(0, passes, view.node.outputs[0])


def _resized_places(view: NodeView, order: StoredOrder | None) -> list[int] | None:
    """Where the axes that a Resize changes lie in an order; None for other operators."""
    rank = rank_of(view.node.outputs[0])
    if not is_op(view.node, "Resize", "Upsample") or rank is None:
        return None
    resized = resized_axes(view, rank)
    return [place for place, axis in enumerate(_axes(order, rank)) if axis in resized]


def _axes(order: StoredOrder | None, rank: int) -> Sequence[int]:
    return order.axes if isinstance(order, Permutation) else range(rank)
