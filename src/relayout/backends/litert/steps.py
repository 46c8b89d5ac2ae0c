"""Steps of quantisers, and which share of elements lies within one of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from relayout.backends.litert.flat_graph import FlatGraph, FlatTensor

WITHIN = 0.999
"""The share of elements that have to lie within a step."""
SLACK = 1.001
"""Steps are stored in single precision."""
LOOKED_THROUGH = frozenset({"RESHAPE", "TRANSPOSE"})


def steps_of(graph: FlatGraph) -> dict[str, float]:
    """By output, the step that its numbers lie on, where that is known; nothing without bytes."""
    if not any(each.steps for operator in graph.operators for each in operator.outputs):
        return {}
    makers = {tensor: each for each in graph.operators for tensor in each.outputs}

    def step(tensor: FlatTensor) -> float:
        if tensor.dtype.kind in "iu":
            return 1.0
        maker = makers.get(tensor)
        source = None if maker is None else maker.inputs[0]
        if maker is None or source is None:
            return 0.0
        if maker.builtin in LOOKED_THROUGH:
            return step(source)
        is_last = maker.builtin == "DEQUANTIZE" and source.steps is not None
        return source.steps.scales[0] if is_last and source.steps is not None else 0.0

    return {tensor.name: step(tensor) for tensor in graph.outputs}


def within(result: Any, exact: Any, bound: float) -> float:
    """The share of elements that lie no further from others than a bound."""
    return float(np.mean(np.abs(wide(result) - wide(exact)) <= SLACK * bound))


def wide(array: Any) -> Any:
    return np.asarray(array).astype(np.float64)
