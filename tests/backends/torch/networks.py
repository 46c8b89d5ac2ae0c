"""Small networks, one of each family."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
import onnx.parser
from onnx import TensorProto, helper, numpy_helper

from tests.samples.sample import Array

OPSET = 20


@dataclass
class Network:
    """A graph while it is being built, with weights drawn the same each time."""

    nodes: list[onnx.NodeProto] = field(default_factory=list)
    weights: list[onnx.TensorProto] = field(default_factory=list)
    inputs: list[onnx.ValueInfoProto] = field(default_factory=list)
    feeds: dict[str, Array] = field(default_factory=dict)
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))

    def input(self, name: str, dims: Sequence[Any], data: Array) -> str:
        kind = helper.np_dtype_to_tensor_dtype(data.dtype)
        self.inputs.append(helper.make_tensor_value_info(name, kind, dims))
        self.feeds[name] = data
        return name

    def weight(self, *shape: int) -> str:
        fan_in = max(1, int(np.prod(shape[1:])))
        return self.constant((self.rng.standard_normal(shape) / np.sqrt(fan_in)).astype("f4"))

    def positive(self, *shape: int) -> str:
        return self.constant(self.rng.uniform(0.5, 1.5, shape).astype("f4"))

    def constant(self, array: Any) -> str:
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def ints(self, *values: int) -> str:
        return self.constant(np.array(values, np.int64))

    def add(self, op_type: str, *operands: str, **attributes: Any) -> str:
        return self.add_several(op_type, 1, *operands, **attributes)[0]

    def add_several(self, op_type: str, count: int, *operands: str, **attributes: Any) -> list[str]:
        results = [f"{op_type}_{len(self.nodes)}_{index}" for index in range(count)]
        self.nodes.append(helper.make_node(op_type, operands, results, **attributes))
        return results

    def conv(self, x: str, inner: int, outer: int, size: int = 3, **attributes: Any) -> str:
        pads = [size // 2] * 4
        weight = self.weight(outer, inner // attributes.get("group", 1), size, size)
        return self.add("Conv", x, weight, self.weight(outer), pads=pads, **attributes)

    def norm(self, x: str, channels: int) -> str:
        parameters = [self.positive(channels), self.weight(channels), self.weight(channels)]
        return self.add("BatchNormalization", x, *parameters, self.positive(channels))

    def model(self, *outputs: str) -> onnx.ModelProto:
        declared = [onnx.ValueInfoProto(name=name) for name in outputs]
        graph = helper.make_graph(self.nodes, "network", self.inputs, declared, self.weights)
        opsets = [helper.make_opsetid("", OPSET)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=9)
        return onnx.shape_inference.infer_shapes(model, data_prop=True)


Made = tuple[onnx.ModelProto, dict[str, Array]]


def cnn() -> Made:
    net = Network()
    x = net.input("image", ["N", 3, 16, 16], net.rng.random((2, 3, 16, 16), np.float32))
    y = net.add("Relu", net.norm(net.conv(x, 3, 8, strides=[2, 2]), 8))
    z = net.add("Clip", net.conv(y, 8, 8, group=8), net.constant(np.float32(0)))
    y = net.add("Relu", net.add("Add", net.conv(z, 8, 8, 1), y))
    y = net.add("MaxPool", y, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    gate = net.add("HardSigmoid", net.conv(net.add("GlobalAveragePool", y), 8, 8, 1))
    y = net.add("Flatten", net.add("GlobalAveragePool", net.add("Mul", y, gate)))
    y = net.add("Gemm", y, net.weight(5, 8), net.weight(5), transB=1)
    return net.model(net.add("Softmax", y, axis=-1)), net.feeds


def detection() -> Made:
    net = Network()
    x = net.input("image", [1, 3, 32, 32], net.rng.random((1, 3, 32, 32), np.float32))
    fine = net.add("LeakyRelu", net.conv(x, 3, 8, strides=[4, 4]), alpha=0.1)
    coarse = net.add("Relu", net.conv(fine, 8, 8, strides=[2, 2]))
    scales = net.constant(np.array([1, 1, 2, 2], np.float32))
    up = net.add(
        "Resize",
        *(coarse, "", scales),
        mode="nearest",
        coordinate_transformation_mode="asymmetric",
        nearest_mode="floor",
    )
    fine = net.add("Concat", fine, up, axis=1)
    heads = []
    for level, channels in ((fine, 16), (coarse, 8)):
        head = net.add("Transpose", net.conv(level, channels, 14, 1), perm=[0, 2, 3, 1])
        heads.append(net.add("Reshape", head, net.ints(0, -1, 7)))
    joined = net.add("Sigmoid", net.add("Concat", *heads, axis=1))
    boxes = net.add("Slice", joined, net.ints(0), net.ints(4), net.ints(2))
    scores = net.add("Slice", joined, net.ints(4), net.ints(7), net.ints(2))
    scores = net.add("Transpose", scores, perm=[0, 2, 1])
    limits = [net.ints(5), net.constant(np.array([0.5], "f4")), net.constant(np.array([0.4], "f4"))]
    picked = net.add("NonMaxSuppression", boxes, scores, *limits, center_point_box=1)
    best, _ = net.add_several("TopK", 2, scores, net.ints(3), axis=2)
    return net.model(joined, picked, best), net.feeds


def segmentation() -> Made:
    net = Network()
    x = net.input("image", ["N", 3, "H", "W"], net.rng.random((1, 3, 19, 22), np.float32))
    shape = net.add("Shape", x)
    down = net.add("PRelu", net.conv(x, 3, 8, strides=[2, 2]), net.weight(8, 1, 1))
    pooled = net.add("AveragePool", down, kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1)
    up = net.add(
        "ConvTranspose", pooled, net.weight(8, 6, 3, 3), net.weight(6), strides=[2, 2], pads=[1] * 4
    )
    lengths = net.add("Slice", shape, net.ints(2), net.ints(4))
    lead = net.add("Slice", net.add("Shape", up), net.ints(0), net.ints(2))
    sizes = net.add("Concat", lead, lengths, axis=0)
    full = net.add("Resize", up, "", "", sizes, mode="linear")
    padded = net.add("Pad", full, net.ints(0, 0, 1, 2, 0, 0, 2, 1), mode="reflect")
    logits = net.conv(padded, 6, 4, 1)
    return net.model(logits, net.add("ArgMax", logits, axis=1)), net.feeds


def transformer() -> Made:
    net = Network()
    tokens = net.rng.integers(0, 11, (2, 7))
    ids = net.input("ids", ["batch", "length"], tokens)
    mask = net.input("mask", ["batch", "length"], (tokens > 2).astype(np.int64))
    x = net.add("Gather", net.weight(11, 12), ids)
    shape = net.add("Shape", x)
    lead = net.add("Slice", shape, net.ints(0), net.ints(2))
    heads = net.add("Concat", lead, net.ints(3, 4), axis=0)
    parts = []
    for _ in range(3):
        part = net.add("Add", net.add("MatMul", x, net.weight(12, 12)), net.weight(12))
        parts.append(net.add("Transpose", net.add("Reshape", part, heads), perm=[0, 2, 1, 3]))
    q, k, v = parts
    scores = net.add("MatMul", q, net.add("Transpose", k, perm=[0, 1, 3, 2]))
    scores = net.add("Div", scores, net.constant(np.float32(2)))
    seen = net.add("Cast", net.add("Unsqueeze", mask, net.ints(1, 2)), to=TensorProto.BOOL)
    scores = net.add("Where", seen, scores, net.constant(np.finfo(np.float32).min))
    y = net.add("MatMul", net.add("Softmax", scores, axis=-1), v)
    y = net.add("Reshape", net.add("Transpose", y, perm=[0, 2, 1, 3]), shape)
    y = net.add("Add", x, y)
    y = net.add("LayerNormalization", y, net.positive(12), net.weight(12), epsilon=1e-6)
    z = net.add("Gelu", net.add("MatMul", y, net.weight(12, 24)))
    z = net.add("Einsum", z, net.weight(24, 12), equation="bte,ef->btf")
    return net.model(net.add("ReduceMean", net.add("Add", y, z), net.ints(1))), net.feeds


def audio() -> Made:
    net = Network()
    x = net.input("wave", ["N", 64], net.rng.standard_normal((2, 64)).astype("f4"))
    padded = net.add("Pad", x, net.ints(0, 8, 0, 8), mode="reflect")
    step, window = net.constant(np.int64(8)), net.add("HannWindow", net.constant(np.int64(16)))
    frames = net.add("STFT", padded, step, window)
    power = net.add("ReduceSumSquare", frames, net.ints(-1), keepdims=0)
    logs = net.add("Log", net.add("Add", power, net.constant(np.float32(1e-3))))
    y = net.add("Transpose", logs, perm=[0, 2, 1])
    y = net.add("Conv", y, net.weight(6, 9, 3), dilations=[2], pads=[2, 2])
    y = net.add("InstanceNormalization", y, net.positive(6), net.weight(6))
    return net.model(net.add("CumSum", net.add("Tanh", y), net.constant(np.int64(2)))), net.feeds


def recurrent() -> Made:
    net = Network()
    x = net.input("steps", ["T", 2, 5], net.rng.standard_normal((6, 2, 5)).astype("f4"))
    weights = [net.weight(2, 16, 5), net.weight(2, 16, 4), net.weight(2, 32)]
    y, _, last = net.add_several("LSTM", 3, x, *weights, hidden_size=4, direction="bidirectional")
    y = net.add("Reshape", net.add("Transpose", y, perm=[0, 2, 1, 3]), net.ints(0, 0, -1))
    weights = [net.weight(1, 9, 8), net.weight(1, 9, 3), net.weight(1, 18)]
    y, h = net.add_several("GRU", 2, y, *weights, hidden_size=3, linear_before_reset=1)
    reverse = [net.weight(1, 3, 8), net.weight(1, 3, 3), net.weight(1, 6)]
    z = net.add("Reshape", last, net.ints(1, 2, 8))
    z, _ = net.add_several("RNN", 2, z, *reverse, hidden_size=3, direction="reverse")
    return net.model(y, h, z), net.feeds


def control() -> Made:
    """A loop that doubles until a sum is large, and a branch on the result."""
    text = """<ir_version: 9, opset_import: ["" : 20]>
    control (float[N,3] x, int64 count) => (float[N,3] y, float[K,3] sums, float z)
    <float limit = {30.0}, bool yes = {1}> {
      y, sums = Loop (count, yes, x) <body = body (int64 i, bool c, float[N,3] a)
        => (bool go, float[N,3] b, float[3] s) <int64[1] first = {0}> {
          b = Add(a, a)
          s = ReduceSum <keepdims = 0> (b, first)
          total = ReduceMax <keepdims = 0> (s)
          go = Less(total, limit)
      }>
      top = ReduceMax <keepdims = 0> (y)
      large = Greater(top, limit)
      z = If (large) <
        then_branch = larger () => (float t) { t = Identity(top) },
        else_branch = smaller () => (float e) { e = Neg(top) }>
    }"""
    data = np.arange(6, dtype=np.float32).reshape(2, 3)
    return onnx.parser.parse_model(text), {"x": data, "count": np.array(9, np.int64)}


def quantised() -> Made:
    net = Network()
    x = net.input("image", [1, 3, 8, 8], net.rng.random((1, 3, 8, 8), np.float32))
    scale, zero = net.constant(np.float32(1 / 128)), net.constant(np.uint8(3))
    x = net.add("DequantizeLinear", net.add("QuantizeLinear", x, scale, zero), scale, zero)
    weight = net.constant(net.rng.integers(-127, 127, (4, 3, 3, 3)).astype(np.int8))
    zeros = net.constant(np.zeros(4, np.int8))
    weight = net.add("DequantizeLinear", weight, net.positive(4), zeros, axis=0)
    return net.model(net.add("Conv", x, weight, pads=[1, 1, 1, 1])), net.feeds


FAMILIES: dict[str, Callable[[], Made]] = {
    family.__name__: family
    for family in (
        *(cnn, detection, segmentation, transformer, audio, recurrent, control, quantised),
    )
}
