"""Products with a weight whose results are transposed: products with their factors exchanged."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod

import numpy as np

from relayout.backends.litert.builder import INT32
from relayout.backends.litert.collapse import moved_groups
from relayout.backends.litert.flat_graph import FlatGraph, FlatOperator, FlatTensor
from relayout.backends.litert.fusing import ACTIVATION

TURNED = (1, 0)
"""The order of a matrix that is transposed as a whole."""


def turned(graph: FlatGraph) -> FlatGraph:
    """The graph without TRANSPOSEs of what a FULLY_CONNECTED makes, where nothing else reads it.

    The transpose of `x w'` is `w x'`, which BATCH_MATMUL computes from `w` and `x` as they are.
    """
    pass_ = _Turning(graph)
    graph.operators = [made for operator in graph.operators for made in pass_.instead_of(operator)]
    graph.remove_dead()
    return graph


@dataclass(slots=True)
class _Turning:
    graph: FlatGraph
    producers: dict[FlatTensor, FlatOperator] = field(default_factory=dict)
    readers: dict[FlatTensor, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for operator in self.graph.operators:
            self.producers.update(dict.fromkeys(operator.outputs, operator))
        for tensor, operators in self.graph.consumers().items():
            self.readers[tensor] = len(operators)
        for tensor in self.graph.outputs:
            self.readers[tensor] = self.readers.get(tensor, 0) + 1

    def instead_of(self, operator: FlatOperator) -> list[FlatOperator]:
        """What an operator becomes: itself, unless it transposes a product."""
        product = self._product(operator)
        return [operator] if product is None else _exchanged(operator, product)

    def _product(self, operator: FlatOperator) -> FlatOperator | None:
        """The FULLY_CONNECTED whose whole result is transposed."""
        tensor = operator.inputs[0] if operator.builtin == "TRANSPOSE" else None
        perm = operator.inputs[1] if tensor is not None else None
        if tensor is None or perm is None or perm.data is None:
            return None
        lengths, order = moved_groups(tensor.shape, [int(axis) for axis in perm.data])
        product = self._made_by(tensor)
        if product is None or order != TURNED or tensor.dtype != np.float32:
            return None
        weight = product.inputs[1]
        is_whole = weight is not None and lengths[1] == weight.shape[0]
        return product if is_whole and not product.options.get(ACTIVATION) else None

    def _made_by(self, tensor: FlatTensor) -> FlatOperator | None:
        """The product that only this tensor holds, maybe with other axes."""
        producer = self.producers.get(tensor)
        if producer is None or self.readers.get(tensor) != 1:
            return None
        if producer.builtin == "RESHAPE" and producer.inputs[0] is not None:
            return self._made_by(producer.inputs[0])
        return producer if producer.builtin == "FULLY_CONNECTED" else None


def _exchanged(operator: FlatOperator, product: FlatOperator) -> list[FlatOperator]:
    tensor, weight = product.inputs[0], product.inputs[1]
    bias = product.inputs[2] if len(product.inputs) > 2 else None
    if tensor is None or weight is None:
        return [operator]
    result, name = operator.outputs[0], operator.outputs[0].name
    columns, length = weight.shape
    rows = prod(tensor.shape) // length
    made: list[FlatOperator] = []
    flat = _view(made, tensor, (rows, length), f"{name}/rows")
    matrix = FlatTensor(f"{name}/product", (columns, rows), result.dtype)
    flags = {"adjX": False, "adjY": True}
    made.append(FlatOperator("BATCH_MATMUL", (weight, flat), (matrix,), flags))
    if bias is not None and bias.data is not None:
        column = bias.data.reshape(columns, 1)
        shift = FlatTensor(f"{bias.name}/column", column.shape, bias.dtype, column)
        sums = FlatTensor(f"{name}/sum", matrix.shape, result.dtype)
        made.append(FlatOperator("ADD", (matrix, shift), (sums,)))
        matrix = sums
    made.append(_reshape(matrix, result, f"{name}/shape"))
    return made


def _view(
    made: list[FlatOperator], tensor: FlatTensor, shape: tuple[int, ...], name: str
) -> FlatTensor:
    if tensor.shape == shape:
        return tensor
    result = FlatTensor(name, shape, tensor.dtype)
    made.append(_reshape(tensor, result, f"{name}/shape"))
    return result


def _reshape(tensor: FlatTensor, result: FlatTensor, name: str) -> FlatOperator:
    lengths = np.asarray(result.shape, INT32)
    target = FlatTensor(name, lengths.shape, INT32, lengths)
    return FlatOperator("RESHAPE", (tensor, target), (result,), {"newShape": list(result.shape)})
