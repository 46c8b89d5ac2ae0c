"""The networks of the benchmark, with the shapes of the published ones and random weights."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.resnet101.layers import Network

CLASSES = 1000


def resnet(name: str, blocks: tuple[int, ...]) -> Network:
    """Bottleneck blocks with the stride in the 3x3 convolution."""
    net = Network(name)
    value = _conv_norm(net, net.INPUT, (3, 64), 7, 2)
    value = net.max_pool(net.apply("Relu", value), 3, 2)
    depth = 64
    for stage, count in enumerate(blocks):
        for block in range(count):
            stride = 2 if stage > 0 and block == 0 else 1
            value = _bottleneck(net, value, depth, 64 << stage, stride)
            depth = 256 << stage
    return _head(net, value, depth)


def _bottleneck(net: Network, value: str, depth: int, width: int, stride: int) -> str:
    hidden = net.apply("Relu", _conv_norm(net, value, (depth, width), 1))
    hidden = net.apply("Relu", _conv_norm(net, hidden, (width, width), 3, stride))
    hidden = _conv_norm(net, hidden, (width, 4 * width), 1, gain=0.3)
    if stride > 1 or depth != 4 * width:
        value = _conv_norm(net, value, (depth, 4 * width), 1, stride)
    return net.apply("Relu", net.apply("Add", hidden, value))


def mobilenet_v2() -> Network:
    """Inverted residual blocks: expansion, depthwise convolution, projection."""
    net = Network("mobilenet_v2")
    value = net.clip6(_conv_norm(net, net.INPUT, (3, 32), 3, 2))
    depth = 32
    stages = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2))
    for factor, width, count, stride in (*stages, (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)):
        for block in range(count):
            value = _inverted(net, value, (depth, width), factor, stride if block == 0 else 1)
            depth = width
    value = net.clip6(_conv_norm(net, value, (depth, 1280), 1))
    return _head(net, value, 1280)


def _inverted(net: Network, value: str, depths: tuple[int, int], factor: int, stride: int) -> str:
    inner = depths[0] * factor
    hidden = value
    if factor > 1:
        hidden = net.clip6(_conv_norm(net, value, (depths[0], inner), 1))
    hidden = net.clip6(_conv_norm(net, hidden, (inner, inner), 3, stride, groups=inner))
    hidden = _conv_norm(net, hidden, (inner, depths[1]), 1)
    is_residual = stride == 1 and depths[0] == depths[1]
    return net.apply("Add", hidden, value) if is_residual else hidden


def convnext_tiny() -> Network:
    """Blocks of a depthwise 7x7 convolution and a perceptron over the channels, stored last."""
    net = Network("convnext_tiny")
    value = net.conv(net.INPUT, (3, 96), 4, stride=4, pad=0, biased=True)
    value = _norm_over_channels(net, value, 96)
    depth = 96
    for stage, count in enumerate((3, 3, 9, 3)):
        if stage > 0:
            value = _norm_over_channels(net, value, depth)
            value = net.conv(value, (depth, 2 * depth), 2, stride=2, pad=0, biased=True)
            depth *= 2
        for _ in range(count):
            value = _convnext_block(net, value, depth)
    pooled = net.apply("GlobalAveragePool", value)
    net.classify(_flat(net, _norm_over_channels(net, pooled, depth)), (depth, CLASSES))
    return net


def _convnext_block(net: Network, value: str, depth: int) -> str:
    hidden = net.conv(value, (depth, depth), 7, groups=depth, biased=True)
    hidden = net.layer_norm(net.transpose(hidden, (0, 2, 3, 1)), depth)
    hidden = net.apply("Gelu", net.linear(hidden, (depth, 4 * depth)))
    hidden = net.transpose(net.linear(hidden, (4 * depth, depth)), (0, 3, 1, 2))
    return net.apply("Add", net.scaled(hidden, depth, 0.3), value)


def _norm_over_channels(net: Network, value: str, depth: int) -> str:
    normed = net.layer_norm(net.transpose(value, (0, 2, 3, 1)), depth)
    return net.transpose(normed, (0, 3, 1, 2))


def _conv_norm(
    net: Network,
    value: str,
    depths: tuple[int, int],
    size: int,
    stride: int = 1,
    *,
    groups: int = 1,
    gain: float = 1.0,
) -> str:
    return net.norm(net.conv(value, depths, size, stride=stride, groups=groups), depths[1], gain)


def _head(net: Network, value: str, depth: int) -> Network:
    net.classify(_flat(net, net.apply("GlobalAveragePool", value)), (depth, CLASSES))
    return net


def _flat(net: Network, value: str) -> str:
    return net.apply("Flatten", value)


NETWORKS: dict[str, Callable[[], Network]] = {
    "resnet101": lambda: resnet("resnet101", (3, 4, 23, 3)),
    "resnet50": lambda: resnet("resnet50", (3, 4, 6, 3)),
    "mobilenet_v2": mobilenet_v2,
    "convnext_tiny": convnext_tiny,
}
