"""Convolutional networks in the shapes of the benchmark, small enough for every change."""

from __future__ import annotations

from collections.abc import Callable

import onnx

from benchmarks.resnet101.forms import onnx_model
from benchmarks.resnet101.layers import Network
from benchmarks.resnet101.networks import _bottleneck, _convnext_block, _inverted


def residual() -> Network:
    """A stem, blocks with and without stride, a pool and a classifier of an odd width."""
    net = Network("residual")
    value = net.norm(net.conv(net.INPUT, (3, 16), 7, stride=2), 16)
    value = net.max_pool(net.apply("Relu", value), 3, 2)
    value = _bottleneck(net, value, 16, 8, 1)
    value = _bottleneck(net, value, 32, 8, 1)
    value = _bottleneck(net, value, 32, 16, 2)
    return _classified(net, value, 64, 10)


def inverted() -> Network:
    """Depthwise convolutions with and without stride, and bounds at 6."""
    net = Network("inverted")
    value = net.clip6(net.norm(net.conv(net.INPUT, (3, 16), 3, stride=2), 16))
    value = _inverted(net, value, (16, 24), 1, 1)
    value = _inverted(net, value, (24, 24), 6, 1)
    value = _inverted(net, value, (24, 40), 6, 2)
    return _classified(net, value, 40, 24)


def perceptrons() -> Network:
    """Normalisation and products over channels that a Transpose brings last."""
    net = Network("perceptrons")
    value = net.conv(net.INPUT, (3, 16), 4, stride=4, pad=0, biased=True)
    value = _convnext_block(net, value, 16)
    value = _convnext_block(net, value, 16)
    return _classified(net, value, 16, 7)


def _classified(net: Network, value: str, depth: int, classes: int) -> Network:
    net.classify(net.apply("Flatten", net.apply("GlobalAveragePool", value)), (depth, classes))
    return net


SMALL: dict[str, Callable[[], Network]] = {
    "residual": residual,
    "inverted": inverted,
    "perceptrons": perceptrons,
}


def small_model(name: str, batch: int = 2, side: int = 50) -> onnx.ModelProto:
    return onnx_model(SMALL[name](), batch, side)
