"""What a model moves, counted from its message with onnx alone."""

from __future__ import annotations

import math
from typing import NamedTuple

import onnx


class Moved(NamedTuple):
    """Transposes of values that are not constants, and the bytes that they read and write."""

    transposes: int
    bytes: int


def recounted(model: onnx.ModelProto) -> Moved:
    """The figures of a model without bodies and functions in which every length is a number."""
    graph = onnx.shape_inference.infer_shapes(model, strict_mode=True, data_prop=True).graph
    constants = {tensor.name for tensor in graph.initializer}
    constants |= {node.output[0] for node in graph.node if node.op_type == "Constant"}
    sizes = {
        value.name: _bytes(value)
        for values in (graph.input, graph.value_info, graph.output)
        for value in values
    }
    moving = [
        node
        for node in graph.node
        if node.op_type == "Transpose" and node.input[0] not in constants
    ]
    return Moved(len(moving), sum(sizes[node.input[0]] + sizes[node.output[0]] for node in moving))


def _bytes(value: onnx.ValueInfoProto) -> int:
    tensor = value.type.tensor_type
    dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)
    return int(math.prod(dim.dim_value for dim in tensor.shape.dim) * dtype.itemsize)
