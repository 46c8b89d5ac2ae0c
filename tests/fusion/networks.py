"""Networks of reduced width whose kernels TVM was counted on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

SIZE = 64


@dataclass(slots=True)
class _Builder:
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    weights: list[onnx.TensorProto] = field(default_factory=list)

    def node(self, op_type: str, *operands: str, **attributes: Any) -> str:
        name = f"{op_type}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(op_type, operands, [name], name, **attributes))
        return name

    def weight(self, *shape: int) -> str:
        name = f"w{len(self.weights)}"
        values = np.random.default_rng(len(self.weights)).standard_normal(shape) * 0.1
        self.weights.append(numpy_helper.from_array(values.astype(np.float32), name))
        return name

    def conv(
        self, x: str, inputs: int, outputs: int, side: int, *, stride: int = 1, group: int = 1
    ) -> str:
        weight, bias = self.weight(outputs, inputs // group, side, side), self.weight(outputs)
        moves = {"strides": [stride] * 2, "pads": [side // 2] * 4, "group": group}
        return self.node("Conv", x, weight, bias, **moves)

    def head(self, x: str, channels: int, classes: int) -> str:
        pooled = self.node("Flatten", self.node("GlobalAveragePool", x))
        weight, bias = self.weight(classes, channels), self.weight(classes)
        return self.node("Gemm", pooled, weight, bias, transB=1)

    def model(self, result: str) -> onnx.ModelProto:
        graph = helper.make_graph(
            self.nodes,
            "network",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 3, SIZE, SIZE))],
            [helper.make_tensor_value_info(result, TensorProto.FLOAT, (1, 10))],
            self.weights,
        )
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def resnet18(widths: tuple[int, ...] = (16, 32, 64, 128)) -> onnx.ModelProto:
    net = _Builder()
    h = net.node("Relu", net.conv("x", 3, widths[0], 7, stride=2))
    h = net.node("MaxPool", h, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    channels = widths[0]
    for stage, width in enumerate(widths):
        for block in range(2):
            stride = 2 if stage and not block else 1
            inner = net.node("Relu", net.conv(h, channels, width, 3, stride=stride))
            inner = net.conv(inner, width, width, 3)
            is_kept = stride == 1 and channels == width
            skip = h if is_kept else net.conv(h, channels, width, 1, stride=stride)
            h = net.node("Relu", net.node("Add", inner, skip))
            channels = width
    return net.model(net.head(h, channels, 10))


BLOCKS = ((1, 8, 1, 1), (6, 12, 2, 2), (6, 16, 3, 2), (6, 24, 4, 2), (6, 32, 3, 1))
"""How much each block widens, its channels, repeats, and first stride."""


def mobilenet_v2(activation: str = "Clip") -> onnx.ModelProto:
    net = _Builder()

    def active(x: str) -> str:
        if activation != "Clip":
            return net.node(activation, x)
        return net.node("Clip", x, "low", "high")

    for name, value in (("low", 0.0), ("high", 6.0)):
        net.weights.append(numpy_helper.from_array(np.asarray(value, np.float32), name))
    h, channels = active(net.conv("x", 3, 16, 3, stride=2)), 16
    for expand, width, repeats, first in BLOCKS:
        for repeat in range(repeats):
            stride, inner = (1 if repeat else first), channels * expand
            y = active(net.conv(h, channels, inner, 1)) if expand > 1 else h
            y = active(net.conv(y, inner, inner, 3, stride=stride, group=inner))
            y = net.conv(y, inner, width, 1)
            h = net.node("Add", h, y) if stride == 1 and channels == width else y
            channels = width
    return net.model(net.head(h, channels, 10))


def transformer_block(length: int = 32, width: int = 64, heads: int = 4) -> onnx.ModelProto:
    """Attention with norms and softmax written out, then two products with a Gelu by hand."""
    net = _Builder()
    for name, array in (
        ("split", np.array([1, length, heads, width // heads])),
        ("whole", np.array([1, length, width])),
        ("last", np.array([-1])),
        ("scale", np.float32((width // heads) ** -0.5)),
        ("eps", np.float32(1e-5)),
        ("two", np.float32(2)),
        ("root", np.float32(2**0.5)),
        ("one", np.float32(1)),
        ("half", np.float32(0.5)),
    ):
        net.weights.append(numpy_helper.from_array(np.asarray(array), name))
    h = net.node("Add", "x", _attention(net, _norm(net, "x", width), width))
    inner = net.node("MatMul", _norm(net, h, width), net.weight(width, 4 * width))
    inner = net.node("Add", inner, net.weight(4 * width))
    erf = net.node("Erf", net.node("Div", inner, "root"))
    gelu = net.node("Mul", net.node("Mul", inner, net.node("Add", erf, "one")), "half")
    y = net.node("MatMul", gelu, net.weight(4 * width, width))
    result = net.node("Add", h, net.node("Add", y, net.weight(width)))
    model = net.model(result)
    shape = [1, length, width]
    for value in (model.graph.input[0], model.graph.output[0]):
        value.CopyFrom(helper.make_tensor_value_info(value.name, TensorProto.FLOAT, shape))
    model.opset_import[0].version = 21
    return model


def _norm(net: _Builder, x: str, width: int) -> str:
    centred = net.node("Sub", x, net.node("ReduceMean", x, "last"))
    spread = net.node("ReduceMean", net.node("Pow", centred, "two"), "last")
    normal = net.node("Div", centred, net.node("Sqrt", net.node("Add", spread, "eps")))
    return net.node("Add", net.node("Mul", normal, net.weight(width)), net.weight(width))


def _attention(net: _Builder, x: str, width: int) -> str:
    def heads(perm: list[int]) -> str:
        made = net.node("Add", net.node("MatMul", x, net.weight(width, width)), net.weight(width))
        return net.node("Transpose", net.node("Reshape", made, "split"), perm=perm)

    query, key, value = heads([0, 2, 1, 3]), heads([0, 2, 3, 1]), heads([0, 2, 1, 3])
    score = net.node("Mul", net.node("MatMul", query, key), "scale")
    shifted = net.node("Exp", net.node("Sub", score, net.node("ReduceMax", score, "last")))
    weight = net.node("Div", shifted, net.node("ReduceSum", shifted, "last"))
    mixed = net.node("Transpose", net.node("MatMul", weight, value), perm=[0, 2, 1, 3])
    out = net.node("MatMul", net.node("Reshape", mixed, "whole"), net.weight(width, width))
    return net.node("Add", out, net.weight(width))
