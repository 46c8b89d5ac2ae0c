"""Random graphs of operators that share kernels, around convolutions and products."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

DEPTH = 8
IMAGE = (2, DEPTH, 6, 6)
UNARY = ("Relu", "Sigmoid", "Tanh", "Exp", "Neg", "Clip", "Gelu", "Softmax", "Abs")
BINARY = ("Add", "Add", "Add", "Mul", "Sub", "Max")


class Writer:
    """A graph while it is drawn; all values have one shape, so that any may meet any."""

    def __init__(self, seed: int) -> None:
        self.source = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.weights: dict[str, Any] = {}
        self.values = ["x", "z"]

    def drawn(self, items: Any) -> str:
        return str(items[int(self.source.integers(len(items)))])

    def recent(self) -> str:
        return self.drawn(self.values[-3:])

    def weight(self, *shape: int) -> str:
        name = f"w{len(self.weights)}"
        array = self.source.standard_normal(shape, np.float32)
        self.weights[name] = array / np.float32(np.sqrt(np.prod(shape[1:]) or 1))
        return name

    def node(self, op_type: str, inputs: list[str], **attributes: Any) -> str:
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op_type, inputs, [name], **attributes))
        return name

    def conv(self) -> str:
        size = int(self.drawn((1, 3)))
        groups = int(self.drawn((1, DEPTH)))
        given = [self.recent(), self.weight(DEPTH, DEPTH // groups, size, size)]
        if self.source.random() < 0.6:
            given.append(self.weight(DEPTH))
        return self.node("Conv", given, pads=[size // 2] * 4, group=groups)

    def product(self) -> str:
        last = self.node("Transpose", [self.recent()], perm=[0, 2, 3, 1])
        value = self.node("MatMul", [last, self.weight(DEPTH, DEPTH)])
        if self.source.random() < 0.6:
            value = self.node("Add", [value, self.weight(DEPTH)])
        return self.node("Transpose", [value], perm=[0, 3, 1, 2])

    def unary(self) -> str:
        name = self.drawn(UNARY)
        value = self.recent() if name != "Exp" else self.node("Tanh", [self.recent()])
        return self.node(name, [value])

    def binary(self) -> str:
        other = self.recent() if self.source.random() < 0.7 else self.weight(DEPTH, 1, 1)
        return self.node(self.drawn(BINARY), [self.recent(), other])

    def pool(self) -> str:
        return self.node("MaxPool", [self.recent()], kernel_shape=[3, 3], pads=[1, 1, 1, 1])

    def step(self) -> None:
        ways = (self.conv, self.product, self.unary, self.unary, self.binary, self.binary)
        way = (*ways, self.pool)[int(self.source.integers(len(ways) + 1))]
        self.values.append(way())


def random_model(seed: int, steps: int = 14) -> tuple[onnx.ModelProto, dict[str, Any]]:
    """A model of two operands and two results, and numbers for it."""
    writer = Writer(seed)
    for _ in range(steps):
        writer.step()
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, IMAGE) for name in "xz"]
    results = list(dict.fromkeys((writer.values[-1], writer.values[-4])))
    outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, IMAGE) for name in results]
    weights = [numpy_helper.from_array(array, name) for name, array in writer.weights.items()]
    graph = helper.make_graph(writer.nodes, "random", inputs, outputs, weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    drawn = writer.source.standard_normal((2, *IMAGE), np.float32)
    return model, {"x": drawn[0], "z": drawn[1]}
