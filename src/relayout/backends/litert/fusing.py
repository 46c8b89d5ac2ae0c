"""What can be part of the builtin before it: factors, biases and activations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from relayout.backends.litert.builtins import ACTIVATIONS, FUSING
from relayout.backends.litert.flat_graph import FlatData, FlatGraph, FlatOperator, FlatTensor

WEIGHT, BIAS = "weight", "bias"
LINEAR = {
    "CONV_2D": {WEIGHT: 1, BIAS: 2, "axis": 0},
    "DEPTHWISE_CONV_2D": {WEIGHT: 1, BIAS: 2, "axis": 3},
    "CONV_3D": {WEIGHT: 1, BIAS: 2, "axis": 4},
    "TRANSPOSE_CONV": {WEIGHT: 1, BIAS: 3, "axis": 0},
    "FULLY_CONNECTED": {WEIGHT: 1, BIAS: 2, "axis": 0},
}
"""Builtins with a weight and a bias: which operands these are, and the axis of the outputs."""
ACTIVATION = "fusedActivationFunction"


def fused(graph: FlatGraph) -> FlatGraph:
    """The graph with as few operators as their builtins allow."""
    return _LayerFusing(graph).run()


@dataclass(slots=True)
class _LayerFusing:
    graph: FlatGraph
    producers: dict[FlatTensor, FlatOperator] = field(default_factory=dict)
    readers: dict[FlatTensor, int] = field(default_factory=dict)

    def run(self) -> FlatGraph:
        for tensor, operators in self.graph.consumers().items():
            self.readers[tensor] = len(operators)
        for tensor in self.graph.outputs:
            self.readers[tensor] = self.readers.get(tensor, 0) + 1
        kept: list[FlatOperator] = []
        for operator in self.graph.operators:
            before = self._before(operator)
            merged = None if before is None else self._merged(before, operator)
            if before is None or merged is None:
                kept.append(operator)
                self._note(operator)
                continue
            kept[kept.index(before)] = merged
            self._note(merged)
        # What was merged runs where the first of its parts ran, after all that it reads.
        self.graph.operators = kept
        return self.graph

    def _note(self, operator: FlatOperator) -> None:
        self.producers.update(dict.fromkeys(operator.outputs, operator))

    def _before(self, operator: FlatOperator) -> FlatOperator | None:
        """The operator before one, if nothing else reads what it makes."""
        for tensor in operator.inputs[:2]:
            if tensor is None or tensor.data is not None:
                continue
            producer = self.producers.get(tensor)
            if producer is not None and self.readers.get(tensor) == 1:
                return producer
        return None

    def _merged(self, before: FlatOperator, operator: FlatOperator) -> FlatOperator | None:
        for merge in (_with_activation, _with_factor, _with_shift):
            merged = merge(before, operator)
            if merged is not None:
                return merged
        return None


def _with_activation(before: FlatOperator, operator: FlatOperator) -> FlatOperator | None:
    number = ACTIVATIONS.get(operator.builtin)
    if number is None or before.builtin not in FUSING or before.options.get(ACTIVATION):
        return None
    options = {**before.options, ACTIVATION: number}
    return replace(before, outputs=operator.outputs, options=options)


def _with_factor(before: FlatOperator, operator: FlatOperator) -> FlatOperator | None:
    return _with_number(before, operator, "MUL", _scaled)


def _with_shift(before: FlatOperator, operator: FlatOperator) -> FlatOperator | None:
    return _with_number(before, operator, "ADD", _shifted)


def _with_number(
    before: FlatOperator,
    operator: FlatOperator,
    builtin: str,
    change: Callable[[FlatOperator, FlatData], list[FlatTensor | None] | None],
) -> FlatOperator | None:
    """A layer whose result a constant per output is multiplied with, or added to."""
    is_layer = before.builtin in LINEAR and not before.options.get(ACTIVATION)
    if operator.builtin != builtin or not is_layer:
        return None
    result = operator.outputs[0]
    constant = next((t for t in operator.inputs if t is not None and t.data is not None), None)
    if constant is None or constant.data is None or result.shape != before.outputs[0].shape:
        return None
    outputs = result.shape[-1]
    if constant.data.size not in {1, outputs} or (
        constant.rank and constant.shape[-1] == 1 != outputs and constant.data.size != 1
    ):
        return None
    numbers = np.broadcast_to(constant.data.reshape(-1), (outputs,)).astype(np.float64)
    inputs = change(before, numbers)
    if inputs is None:
        return None
    options = {**before.options, ACTIVATION: operator.options.get(ACTIVATION, 0)}
    return replace(before, inputs=tuple(inputs), outputs=operator.outputs, options=options)


def _scaled(before: FlatOperator, numbers: FlatData) -> list[FlatTensor | None] | None:
    """Products are taken in double precision and rounded once."""
    places = LINEAR[before.builtin]
    weight, bias = _parameters(before)
    if weight is None or weight.data is None or (bias is not None and bias.data is None):
        return None
    lengths = [1] * weight.rank
    lengths[places["axis"]] = -1
    inputs = list(before.inputs)
    inputs[places[WEIGHT]] = _constant(weight, weight.data * numbers.reshape(lengths))
    if bias is not None and bias.data is not None:
        inputs[places[BIAS]] = _constant(bias, bias.data * numbers)
    return inputs


def _shifted(before: FlatOperator, numbers: FlatData) -> list[FlatTensor | None] | None:
    weight, bias = _parameters(before)
    if weight is None or (bias is not None and bias.data is None):
        return None
    inputs = list(before.inputs)
    place = LINEAR[before.builtin][BIAS]
    inputs += [None] * (place + 1 - len(inputs))
    if bias is not None and bias.data is not None:
        inputs[place] = _constant(bias, bias.data + numbers)
    else:
        kind = before.outputs[0].dtype
        name = f"{before.outputs[0].name}/bias"
        inputs[place] = FlatTensor(name, numbers.shape, kind, numbers.astype(kind))
    return inputs


def _parameters(before: FlatOperator) -> tuple[FlatTensor | None, FlatTensor | None]:
    places, inputs = LINEAR[before.builtin], before.inputs
    bias = inputs[places[BIAS]] if len(inputs) > places[BIAS] else None
    return inputs[places[WEIGHT]], bias


def _constant(like: FlatTensor, numbers: FlatData) -> FlatTensor:
    return FlatTensor(f"{like.name}/folded", like.shape, like.dtype, numbers.astype(like.dtype))
