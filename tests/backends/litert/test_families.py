"""One small network of each family, converted, run by LiteRT and compared with ONNX Runtime."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from tests.backends.litert.building import assert_runs_alike, drawn, model_of


@dataclass
class Net:
    """Nodes one after the other; each call gives the name of what a node makes."""

    shapes: dict[str, Sequence[int]]
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    held: dict[str, Any] = field(default_factory=dict)

    def __call__(self, op_type: str, *operands: Any, outputs: int = 1, **attributes: Any) -> Any:
        names = [each if isinstance(each, str) else self._constant(each) for each in operands]
        made = [f"{op_type.lower()}{len(self.nodes)}_{index}" for index in range(outputs)]
        self.nodes.append(helper.make_node(op_type, names, made, **attributes))
        return made[0] if outputs == 1 else made

    def _constant(self, array: Any) -> str:
        name = f"constant{len(self.held)}"
        self.held[name] = np.asarray(array)
        return name

    def model(self, *outputs: str) -> onnx.ModelProto:
        return model_of(self.nodes, self.shapes, outputs, self.held)

    def conv(self, x: str, inputs: int, outputs: int, size: int = 3, **attributes: Any) -> str:
        group = attributes.get("group", 1)
        weight = 0.3 * drawn(outputs, inputs // group, size, size)
        pads = [size // 2] * 4
        name: str = self("Conv", x, weight, drawn(outputs), pads=pads, **attributes)
        return name

    def linear(self, x: str, inputs: int, outputs: int) -> str:
        product = self("MatMul", x, 0.3 * drawn(inputs, outputs))
        name: str = self("Add", product, drawn(outputs))
        return name

    def normalised(self, x: str, width: int) -> str:
        name: str = self("LayerNormalization", x, drawn(width), drawn(width), axis=-1)
        return name

    def attention(self, x: str, batch: int, length: int, width: int, heads: int) -> str:
        """As exporters write it: one product, five axes, three factors."""
        parts = self.linear(x, width, 3 * width)
        split = self("Reshape", parts, [batch, length, 3, heads, width // heads])
        moved = self("Transpose", split, perm=[2, 0, 3, 1, 4])
        q, k, v = (self("Gather", moved, np.int64(index), axis=0) for index in range(3))
        scores = self("MatMul", q, self("Transpose", k, perm=[0, 1, 3, 2]))
        weights = self("Softmax", self("Mul", scores, np.float32(0.5)), axis=-1)
        mixed = self("Transpose", self("MatMul", weights, v), perm=[0, 2, 1, 3])
        return self.linear(self("Reshape", mixed, [batch, length, width]), width, width)

    def block(self, x: str, batch: int, length: int, width: int) -> str:
        """Attention and two layers, with normalisations before and sums after."""
        mixed = self.attention(self.normalised(x, width), batch, length, width, 2)
        x = self("Add", x, mixed)
        hidden = self("Gelu", self.linear(self.normalised(x, width), width, 2 * width))
        name: str = self("Add", x, self.linear(hidden, 2 * width, width))
        return name


def classifier() -> onnx.ModelProto:
    net = Net({"picture": (1, 3, 12, 12)})
    x = net("Clip", net.conv("picture", 3, 8, strides=[2, 2]), np.float32(0), np.float32(6))
    x = net("Add", x, net.conv(net("Relu", net.conv(x, 8, 8, group=8)), 8, 8, size=1))
    gate = net("Sigmoid", net.conv(net("GlobalAveragePool", x), 8, 8, size=1))
    pooled = net("Flatten", net("GlobalAveragePool", net("Mul", x, gate)))
    return net.model(net("Softmax", net("Gemm", pooled, drawn(8, 5), drawn(5))))


def detector() -> onnx.ModelProto:
    net = Net({"picture": (1, 3, 8, 8)})
    fine = net("Mul", x := net.conv("picture", 3, 6), net("Sigmoid", x))
    coarse = net("MaxPool", fine, kernel_shape=[2, 2], strides=[2, 2])
    scales = np.asarray([1, 1, 2, 2], np.float32)
    nearest: dict[str, Any] = {"mode": "nearest", "nearest_mode": "floor"}
    nearest["coordinate_transformation_mode"] = "asymmetric"
    again = net("Concat", net("Resize", coarse, "", scales, **nearest), fine, axis=1)
    heads = [
        net("Reshape", net.conv(each, width, 10, size=1), [1, 10, -1])
        for each, width in ((again, 12), (coarse, 6))
    ]
    found = net("Transpose", net("Concat", *heads, axis=2), perm=[0, 2, 1])
    boxes, scores = net("Split", found, [4, 6], axis=2, outputs=2)
    return net.model(net("Concat", boxes, net("Sigmoid", scores), axis=2))


def segmenter() -> onnx.ModelProto:
    net = Net({"picture": (1, 3, 8, 8)})
    x = net("Relu", net.conv("picture", 3, 6, strides=[2, 2]))
    up = net("ConvTranspose", x, 0.3 * drawn(6, 4, 2, 2), drawn(4), strides=[2, 2])
    scales = np.asarray([1, 1, 2, 2], np.float32)
    return net.model(net("Resize", up, "", scales, mode="linear"))


def text_recogniser() -> onnx.ModelProto:
    net = Net({"picture": (1, 1, 8, 12)})
    x = net("MaxPool", net("Relu", net.conv("picture", 1, 4)), kernel_shape=[8, 1])
    x = net("Transpose", net("Squeeze", x, [2]), perm=[2, 0, 1])
    weights = [0.3 * drawn(2, 20, width) for width in (4, 5)]
    x = net("LSTM", x, *weights, 0.3 * drawn(2, 40), hidden_size=5, direction="bidirectional")
    x = net("Reshape", net("Transpose", x, perm=[2, 0, 1, 3]), [1, 12, 10])
    return net.model(net("Softmax", net.linear(x, 10, 7), axis=-1))


def audio_network() -> onnx.ModelProto:
    net = Net({"sound": (1, 2, 40)})
    x = net("Conv", "sound", 0.3 * drawn(6, 2, 5), drawn(6), strides=[2], pads=[2, 2])
    x = net("LeakyRelu", net("InstanceNormalization", x, drawn(6), drawn(6)), alpha=0.1)
    x = net("Conv", x, 0.3 * drawn(6, 6, 3), dilations=[2], pads=[2, 2])
    return net.model(net("Tanh", net("ReduceMean", x, [2], keepdims=0)))


def vision_transformer() -> onnx.ModelProto:
    net = Net({"picture": (1, 3, 8, 8)})
    x = net("Conv", "picture", 0.3 * drawn(8, 3, 4, 4), drawn(8), strides=[4, 4])
    x = net("Transpose", net("Reshape", x, [1, 8, 4]), perm=[0, 2, 1])
    x = net("Add", net("Concat", drawn(1, 1, 8), x, axis=1), drawn(1, 5, 8))
    x = net.normalised(net.block(x, 1, 5, 8), 8)
    return net.model(net.linear(net("Gather", x, np.int64(0), axis=1), 8, 5))


def window_transformer() -> onnx.ModelProto:
    net = Net({"picture": (1, 4, 4, 8)})
    x = net("Reshape", "picture", [1, 2, 2, 2, 2, 8])
    x = net("Reshape", net("Transpose", x, perm=[0, 1, 3, 2, 4, 5]), [4, 4, 8])
    x = net("Reshape", net.block(x, 4, 4, 8), [1, 2, 2, 2, 2, 8])
    return net.model(net("Reshape", net("Transpose", x, perm=[0, 1, 3, 2, 4, 5]), [1, 4, 4, 8]))


def convnext() -> onnx.ModelProto:
    net = Net({"picture": (1, 6, 8, 8)})
    x = net("Transpose", net.conv("picture", 6, 6, size=7, group=6), perm=[0, 2, 3, 1])
    hidden = net("Gelu", net.linear(net.normalised(x, 6), 6, 12))
    x = net("Transpose", net("Mul", net.linear(hidden, 12, 6), drawn(6)), perm=[0, 3, 1, 2])
    return net.model(net("Add", "picture", x))


def language_model() -> onnx.ModelProto:
    net = Net({"weights": (1, 5, 1)})
    places = np.asarray([[3, 1, 4, 1, 5]])
    x = net("Mul", net("Gather", drawn(9, 8), places), "weights")
    return net.model(net("Tanh", net.linear(net.block(net.normalised(x, 8), 1, 5, 8), 8, 4)))


FAMILIES: list[Callable[[], onnx.ModelProto]] = [
    *(classifier, detector, segmenter, text_recogniser, audio_network),
    *(vision_transformer, window_transformer, convnext, language_model),
]


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.__name__)
def test_a_network_of_each_family_runs(family: Callable[[], onnx.ModelProto]) -> None:
    assert_runs_alike(family(), tolerance=1e-4)
