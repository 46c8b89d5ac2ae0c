"""Constants that are spread over a tensor: how long the runs are that ONNX Runtime goes through."""

from __future__ import annotations

from collections.abc import Iterable

from relayout.graph.read import NodeView, constant_of, is_op, shape_of
from relayout.layout.permutation import Permutation
from relayout.layout.shuffle import StoredOrder
from relayout.targets.parted import Parted
from relayout.targets.products import has_bias

SPREADING = ("Add", "Sub", "Mul", "Div")


def parted_broadcast(view: NodeView, order: StoredOrder | None) -> Parted | None:
    """The runs of a tensor to which an operator applies one number, or as many as it is long.

    Three numbers for three channels that are innermost make runs of three elements. A product takes
    its bias in, so that there are none.
    """
    node = view.node
    if not is_op(node, *SPREADING) or constant_of(node.inputs[1]) is None:
        return None
    maker = None if node.inputs[0] is None else node.inputs[0].producer()
    if is_op(maker, "MatMul") and maker is not None and has_bias(maker):
        return None
    tensor, shape, other = node.inputs[0], shape_of(node.inputs[0]), shape_of(node.inputs[1])
    if tensor is None or not shape or other is None or len(other) > len(shape):
        return None
    ahead = len(shape) - len(other)
    varied = {axis + ahead for axis, length in enumerate(other) if length != 1}
    axes = order.axes if isinstance(order, Permutation) else range(len(shape))
    long = [axis for axis in axes if shape[axis] != 1]
    if not varied or varied.issuperset(long):
        return None
    return Parted(0, 0, tensor, tuple(_innermost_alike(reversed(long), varied)))


def _innermost_alike(inwards: Iterable[int], varied: set[int]) -> list[int]:
    """The innermost axes along which the constant varies, or those along which it does not."""
    found: list[int] = []
    for axis in inwards:
        if found and (axis in varied) is not (found[0] in varied):
            break
        found.append(axis)
    return found
