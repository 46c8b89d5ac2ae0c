"""Biases that meet in a sum are added up beforehand, and those that cost a pass are set apart."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from relayout.graph.editing.editor import Editor
from relayout.graph.read import constant_of, is_op, rank_of
from relayout.layout.transport import Changes
from relayout.rewrite.worklist import consumers


@dataclass(frozen=True, slots=True)
class JoinBiases:
    """Of two convolutions that are added, one takes the bias of both.

    Given:  a = Conv(x, v, b); c = Conv(y, w, d); s = Add(a, c)
    Result: a = Conv(x, v, e); c = Conv(y, w); s = Add(a, c), where e = b + d

    The second convolution then needs no pass over its result. Each time one bias goes.
    """

    name: str = "join biases"
    op_types: tuple[str, ...] = ("Add",)

    def apply(self, node: ir.Node, editor: Editor) -> Iterable[ir.Node] | None:
        convs = [_biased_conv(value) for value in node.inputs]
        if len(convs) != 2 or convs[0] is None or convs[1] is None or convs[0] is convs[1]:
            return None
        biases = [constant_of(conv.inputs[2]) for conv in convs if conv is not None]
        arrays = [tensor.numpy() for tensor in biases if tensor is not None]
        if len(arrays) != 2 or arrays[0].shape != arrays[1].shape:
            return None
        total = arrays[0].astype(np.float64) + arrays[1].astype(np.float64)
        bias = editor.constant(
            total.astype(arrays[0].dtype), hint=f"{node.outputs[0].name}_bias", before=convs[0]
        )
        editor.read(convs[0], 2, bias)
        editor.read(convs[1], 2, None)
        return []


def _biased_conv(value: ir.Value | None) -> ir.Node | None:
    """The convolution with a constant bias that a value comes from, if it has no other consumer."""
    if value is None or len(value.uses()) != 1 or value.is_graph_output():
        return None
    conv = value.producer()
    if conv is None or not is_op(conv, "Conv") or len(conv.inputs) < 3:
        return None
    return conv if constant_of(conv.inputs[2]) is not None else None


@dataclass(frozen=True, slots=True)
class BiasApart:
    """The bias of a transposed convolution becomes a sum, which other kernels can take with them.

    Given:  y = ConvTranspose(x, w, b)
    Result: z = ConvTranspose(x, w); y = Add(z, c), where c has the entries of b, as [M, 1, 1]

    For libraries that have no kernel for both it is a pass over the result.
    """

    name: str = "set biases apart"
    op_types: tuple[str, ...] = ("ConvTranspose",)

    def apply(self, node: ir.Node, editor: Editor) -> Iterable[ir.Node] | None:
        result = node.outputs[0]
        tensor = constant_of(node.inputs[2]) if len(node.inputs) > 2 else None
        rank = rank_of(result)
        if tensor is None or rank is None:
            return None
        entries = tensor.numpy().reshape(-1, *[1] * (rank - 2))
        bias = editor.constant(entries, hint=f"{result.name}_bias", before=node)
        (bare,) = editor.adapted(node, [*node.inputs[:2]], [result.shape], Changes())
        total = editor.add(
            "Add",
            [bare, bias],
            before=node,
            hint=f"{result.name}_biased",
            like=result,
            shape=result.shape,
            origin=[node],
        )
        touched = consumers(result)
        editor.substitute(result, total, origin=node)
        editor.discard(node)
        return touched
