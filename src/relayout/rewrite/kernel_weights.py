"""Weights of channels-last kernels in the order that the target has them in."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import onnx_ir as ir

from relayout.graph.editing.editor import Editor
from relayout.graph.names import Names
from relayout.graph.region import regions_of
from relayout.layout.transport import Changes, Transport
from relayout.ops.registry import computes_only
from relayout.targets.channels_last import ChannelsLastKernel
from relayout.targets.target import Target


def store_weights(model: ir.Model, target: Target) -> Counter[str]:
    """Restate kernels whose weights are stored in another order than the target's.

    Given:  y = relayout.Conv2d(x, w)
    Result: v = Transpose<perm=[0,1,3,2]>(w); y = relayout.Conv2d_HWOI(x, v)
    """
    names = Names.of(model)
    applied: Counter[str] = Counter()
    for region in regions_of(model):
        editor = Editor(region, names, computes_only)
        for node in list(region.graph):
            kernel = target.kernel_with_other_weight_order(node)
            if kernel is not None and target.weights is not None:
                _restate(node, kernel, replace(kernel, weights=target.weights), editor)
                applied["store weights in another order"] += 1
    return applied


def _restate(
    node: ir.Node, given: ChannelsLastKernel, wanted: ChannelsLastKernel, editor: Editor
) -> None:
    weight = given.operator.weight
    place = None if weight is None else given.slots.index(weight)
    move = given.weight_order.inverse().then(wanted.weight_order)
    orders = tuple(move if index == place else None for index in range(len(node.inputs)))
    operands = [
        value if value is None or order is None else editor.transposed(value, order, before=node)
        for value, order in zip(node.inputs, orders, strict=True)
    ]
    transport = Transport(orders, (None,), Changes(op_type=wanted.name))
    (result,) = editor.restated(node, transport, operands)
    (old,) = node.outputs
    editor.take_over(old, result)
    editor.substitute(old, result, origin=node)
    editor.discard(node)
