"""Weights in half precision: stored in two bytes, computed in four."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from relayout.backends.litert.flat_graph import FlatGraph, FlatOperator, FlatTensor
from relayout.backends.litert.fusing import LINEAR

SMALLEST = 64
"""A constant of fewer elements saves nothing."""


def halved(graph: FlatGraph) -> FlatGraph:
    """The graph with the weights of its layers as float16, which LiteRT widens once."""
    wide: dict[FlatTensor, FlatTensor] = {}
    widening: list[FlatOperator] = []
    operators = []
    for operator in graph.operators:
        if operator.builtin in LINEAR:
            inputs = tuple(_half(tensor, wide, widening) for tensor in operator.inputs)
            operators.append(replace(operator, inputs=inputs))
        else:
            operators.append(operator)
    graph.operators = [*widening, *operators]
    return graph


def _half(
    tensor: FlatTensor | None, wide: dict[FlatTensor, FlatTensor], widening: list[FlatOperator]
) -> FlatTensor | None:
    if tensor is None or tensor.data is None or tensor.dtype != np.dtype(np.float32):
        return tensor
    if tensor.data.size < SMALLEST:
        return tensor
    if tensor not in wide:
        data = tensor.data.astype(np.float16)
        narrow = FlatTensor(f"{tensor.name}/half", tensor.shape, data.dtype, data)
        wide[tensor] = FlatTensor(tensor.name, tensor.shape, tensor.dtype)
        widening.append(FlatOperator("DEQUANTIZE", (narrow,), (wide[tensor],)))
    return wide[tensor]
