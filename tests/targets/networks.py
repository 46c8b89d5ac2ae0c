"""Well-known networks with their topologies, and few channels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from tests.samples.sample import Array

Batch = int | str


class Network:
    """Writes a network down operator by operator; values are known by their names."""

    def __init__(self, channels: int, *spatial: int, batch: Batch = 1) -> None:
        self.batch = batch
        self.shape: tuple[Batch, ...] = (batch, channels, *spatial)
        self.channels = {"x": channels}
        self.rank = len(self.shape)
        self.nodes: list[onnx.NodeProto] = []
        self.weights: dict[str, Array] = {}
        self.random = np.random.default_rng(5)

    def add(self, op_type: str, *operands: str, channels: int | None = None, **named: Any) -> str:
        """A node; its result has as many channels as its first operand, unless given."""
        result = f"{op_type.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(op_type, operands, [result], name=result, **named))
        self.channels[result] = channels or self.channels.get(operands[0], 0)
        return result

    def weight(self, *shape: int, scale: float = 1.0) -> str:
        return self.constant(self.random.normal(0, scale, shape).astype(np.float32))

    def constant(self, array: Array) -> str:
        name = f"w{len(self.weights)}"
        self.weights[name] = array
        return name

    def conv(self, x: str, outputs: int, size: int = 1, stride: int = 1, group: int = 1) -> str:
        spatial = self.rank - 2
        inputs = self.channels[x] // group
        kernel = self.weight(outputs, inputs, *(size,) * spatial, scale=(inputs * size) ** -0.5)
        pads, strides = [size // 2] * spatial * 2, [stride] * spatial
        operands = (x, kernel, self.weight(outputs))
        return self.add(
            "Conv", *operands, channels=outputs, pads=pads, strides=strides, group=group
        )

    def conv_transpose(self, x: str, outputs: int) -> str:
        kernel = self.weight(self.channels[x], outputs, *(2,) * (self.rank - 2), scale=0.3)
        strides = [2] * (self.rank - 2)
        return self.add("ConvTranspose", x, kernel, channels=outputs, strides=strides)

    def normal(self, x: str) -> str:
        count = self.channels[x]
        variance = self.constant(self.random.uniform(0.5, 2, count).astype(np.float32))
        parameters = [self.weight(count) for _ in range(3)]
        return self.add("BatchNormalization", x, *parameters, variance)

    def pool(self, x: str, op_type: str = "MaxPool", size: int = 2, pad: int = 0) -> str:
        spatial = self.rank - 2
        sizes, strides, pads = [size] * spatial, [2] * spatial, [pad] * spatial * 2
        return self.add(op_type, x, kernel_shape=sizes, strides=strides, pads=pads)

    def classes(self, x: str, count: int) -> str:
        flat = self.add("Flatten", self.add("GlobalAveragePool", x))
        return self.add("Gemm", flat, self.weight(self.channels[x], count), self.weight(count))

    def reshape(self, x: str, *lengths: int) -> str:
        return self.add("Reshape", x, self.constant(np.asarray(lengths, np.int64)))

    def model(self, *outputs: str, rank: int) -> onnx.ModelProto:
        dims = [self.batch, *(f"length{axis}" for axis in range(1, rank))]
        graph = helper.make_graph(
            self.nodes,
            "network",
            [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, self.shape)],
            [helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, dims) for n in outputs],
            [numpy_helper.from_array(array, name) for name, array in self.weights.items()],
        )
        opsets = [helper.make_opsetid("", 21)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def resnet50(batch: Batch) -> onnx.ModelProto:
    net = Network(3, 32, 32, batch=batch)
    x = net.add("Relu", net.normal(net.conv("x", 4, 7, 2)))
    x = net.pool(x, size=3, pad=1)
    for width, (blocks, stride) in zip(
        (4, 8, 16, 32), ((3, 1), (4, 2), (6, 2), (3, 2)), strict=True
    ):
        for block in range(blocks):
            x = _bottleneck(net, x, width, stride if block == 0 else 1, widens=block == 0)
    return net.model(net.classes(x, 10), rank=2)


def _bottleneck(net: Network, x: str, width: int, stride: int, *, widens: bool) -> str:
    y = net.add("Relu", net.normal(net.conv(x, width)))
    y = net.add("Relu", net.normal(net.conv(y, width, 3, stride)))
    y = net.normal(net.conv(y, 4 * width))
    short = net.normal(net.conv(x, 4 * width, 1, stride)) if widens else x
    return net.add("Relu", net.add("Add", y, short))


MOBILE = ((1, 4, 1, 1), (6, 6, 2, 2), (6, 8, 3, 2), (6, 12, 4, 2), (6, 16, 3, 1), (6, 20, 3, 2))
"""How much wider inside, channels, blocks, stride."""


def mobilenet_v2(batch: Batch) -> onnx.ModelProto:
    net = Network(3, 32, 32, batch=batch)
    low, high = (net.constant(np.asarray(limit, np.float32)) for limit in (0, 6))

    def relu6(x: str) -> str:
        return net.add("Clip", x, low, high)

    def inverted(x: str, wider: int, outputs: int, stride: int) -> str:
        inner = net.channels[x] * wider
        y = x if wider == 1 else relu6(net.conv(x, inner))
        y = net.conv(relu6(net.conv(y, inner, 3, stride, group=inner)), outputs)
        joins = stride == 1 and outputs == net.channels[x]
        return net.add("Add", x, y) if joins else y

    x = relu6(net.conv("x", 8, 3, 2))
    for wider, outputs, blocks, stride in (*MOBILE, (6, 24, 1, 1)):
        for block in range(blocks):
            x = inverted(x, wider, outputs, stride if block == 0 else 1)
    return net.model(net.classes(relu6(net.conv(x, 40)), 10), rank=2)


def unet(batch: Batch) -> onnx.ModelProto:
    """Goes up by transposed convolutions on one level and by interpolation on the other."""
    net = Network(3, 32, 32, batch=batch)

    def double(x: str, outputs: int) -> str:
        for _ in range(2):
            x = net.add("Relu", net.normal(net.conv(x, outputs, 3)))
        return x

    scales = net.constant(np.asarray([1, 1, 2, 2], np.float32))
    one = double("x", 4)
    two = double(net.pool(one), 8)
    x = double(net.pool(two), 16)
    x = net.add("Concat", two, net.conv_transpose(x, 8), axis=1, channels=16)
    x = net.add("Resize", double(x, 8), "", scales, mode="linear")
    x = net.add("Concat", one, x, axis=1, channels=12)
    return net.model(net.conv(double(x, 4), 2), rank=4)


def ssd(batch: Batch) -> onnx.ModelProto:
    """Boxes and classes from maps of three sizes, written as exporters do."""
    net = Network(3, 32, 32, batch=batch)

    def head(x: str, each: int) -> str:
        transposed = net.add("Transpose", net.conv(x, 2 * each, 3), perm=[0, 2, 3, 1])
        return net.reshape(transposed, 0, -1, each)

    x, boxes, classes = "x", [], []
    for outputs in (8, 12, 16):
        x = net.add("Relu", net.normal(net.conv(x, outputs, 3, 2)))
        boxes.append(head(x, 4))
        classes.append(head(x, 5))
    scores = net.add("Softmax", net.add("Concat", *classes, axis=1), axis=-1)
    return net.model(net.add("Concat", *boxes, axis=1), scores, rank=3)


def lenet(batch: Batch) -> onnx.ModelProto:
    net = Network(3, 32, 32, batch=batch)
    x = net.pool(net.add("Relu", net.conv("x", 6, 5)))
    x = net.pool(net.add("Relu", net.conv(x, 16, 5)))
    x = net.reshape(x, 0, -1)
    for inputs, outputs in ((1024, 12), (12, 8), (8, 10)):
        x = net.add("Gemm", x, net.weight(inputs, outputs, scale=0.1), net.weight(outputs))
    return net.model(x, rank=2)


def _encoder(batch: Batch, *spatial: int) -> onnx.ModelProto:
    """Everything that has a kernel, along any number of axes."""
    net = Network(4, *spatial, batch=batch)
    x = net.add("Relu", net.normal(net.conv("x", 8, 3)))
    x = net.pool(x)
    x = net.add("InstanceNormalization", x, net.weight(8), net.weight(8))
    x = net.add("GroupNormalization", x, net.weight(8), net.weight(8), num_groups=2)
    x = net.pool(net.conv(x, 8, 3, group=2), "AveragePool")
    scales = net.constant(np.asarray([1, 1, *[2] * len(spatial)], np.float32))
    x = net.add("Resize", net.conv_transpose(x, 6), "", scales, mode="nearest")
    return net.model(x, rank=net.rank)


def signal(batch: Batch) -> onnx.ModelProto:
    return _encoder(batch, 16)


def volume(batch: Batch) -> onnx.ModelProto:
    return _encoder(batch, 8, 4, 12)


NETWORKS: dict[str, Callable[[Batch], onnx.ModelProto]] = {
    network.__name__: network
    for network in (resnet50, mobilenet_v2, unet, ssd, lenet, signal, volume)
}
OUTPUTS: Sequence[str] = ("unet", "signal", "volume")
"""Networks that give features, so that one Transpose stands at their output."""
