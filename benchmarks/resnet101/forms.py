"""A network as an ONNX model and as a PyTorch module, with the same weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import torch
import torch.nn.functional as F  # noqa: N812
from onnx import TensorProto, helper, numpy_helper

from benchmarks.resnet101.layers import Array, Layer, Network

OPSET = 20


def onnx_model(net: Network, batch: int, side: int = 224) -> onnx.ModelProto:
    nodes = [
        helper.make_node(
            layer.op_type,
            [*layer.inputs, *layer.weights],
            [layer.output],
            name=f"{layer.op_type}_{layer.output}",
            **{name: _plain(value) for name, value in layer.attributes.items()},
        )
        for layer in net.layers
    ]
    image = helper.make_tensor_value_info(net.INPUT, TensorProto.FLOAT, [batch, 3, side, side])
    scores = helper.make_tensor_value_info(net.OUTPUT, TensorProto.FLOAT, [batch, "classes"])
    weights = [numpy_helper.from_array(array, name) for name, array in net.weights.items()]
    graph = helper.make_graph(nodes, net.name, [image], [scores], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10)


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def image_for(batch: int, side: int = 224) -> Array:
    """Noise around zero, as normalised photographs have it."""
    drawn = np.random.default_rng(batch).standard_normal((batch, 3, side, side), np.float32)
    return np.asarray(drawn, np.float32)


class EagerNetwork(torch.nn.Module):  # type: ignore[misc]  # torch is read without its types
    """The network as PyTorch runs it layer by layer."""

    def __init__(self, net: Network) -> None:
        super().__init__()
        self.layers = tuple(net.layers)
        self.last = net.OUTPUT
        self.first = net.INPUT
        for name, array in net.weights.items():
            self.register_parameter(
                name, torch.nn.Parameter(torch.from_numpy(array), requires_grad=False)
            )

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        values = {self.first: image}
        for layer in self.layers:
            operands = [values[name] for name in layer.inputs]
            weights = [getattr(self, name) for name in layer.weights]
            values[layer.output] = _run(layer, operands, weights)
        return values[self.last]


def _run(layer: Layer, operands: list[torch.Tensor], weights: list[torch.Tensor]) -> torch.Tensor:
    x = operands[0]
    attributes: dict[str, Any] = dict(layer.attributes)
    match layer.op_type:
        case "Conv":
            bias = weights[1] if len(weights) > 1 else None
            strides, pads, group = (attributes[each] for each in ("strides", "pads", "group"))
            return F.conv2d(x, weights[0], bias, strides, pads[:2], groups=group)
        case "BatchNormalization":
            scale, shift, mean, variance = weights
            return F.batch_norm(x, mean, variance, scale, shift, eps=attributes["epsilon"])
        case "LayerNormalization":
            scale, shift = weights
            return F.layer_norm(x, x.shape[-1:], scale, shift, attributes["epsilon"])
        case "Clip":
            return F.relu6(x)
        case "MaxPool":
            return F.max_pool2d(x, 3, 2, 1)
        case "Gemm":
            return F.linear(x, *weights)
        case "Transpose":
            return x.permute(attributes["perm"])
        case _:
            return _PLAIN[layer.op_type](*operands, *weights)


_PLAIN: dict[str, Callable[..., Any]] = {
    "Add": torch.add,
    "Mul": torch.mul,
    "Relu": F.relu,
    "Gelu": F.gelu,
    "MatMul": torch.matmul,
    "Flatten": lambda x: torch.flatten(x, 1),
    "GlobalAveragePool": lambda x: F.adaptive_avg_pool2d(x, 1),
}
