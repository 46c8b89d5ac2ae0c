"""A model run by torch with every tensor stored as the model has it, channels first or last."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import onnx
import torch
import torch.nn.functional as F  # noqa: N812
from onnx import helper, numpy_helper

KERNELS = "relayout"
"""The domain of operators that read and write channels last."""
FIRST, LAST = (0, 3, 1, 2), (0, 2, 3, 1)


@dataclass(frozen=True, slots=True)
class _Node:
    op_type: str
    is_last: bool
    inputs: tuple[str, ...]
    output: str
    attributes: dict[str, Any]

    @classmethod
    def of(cls, node: onnx.NodeProto) -> _Node:
        attributes = {each.name: helper.get_attribute_value(each) for each in node.attribute}
        is_last = node.domain == KERNELS
        op_type = node.op_type.partition("2d")[0] if is_last else node.op_type
        return cls(op_type, is_last, tuple(node.input), node.output[0], attributes)


class StoredNetwork(torch.nn.Module):  # type: ignore[misc]  # torch is read without its types
    """Runs a node after the other.

    torch's kernels go by strides: a tensor stored channels last that is viewed channels first is
    read channels last, and what they make of it is stored so too. Transposes of the model copy.
    """

    def __init__(self, model: onnx.ModelProto) -> None:
        super().__init__()
        self.nodes = [_Node.of(node) for node in model.graph.node]
        self.first, self.last = model.graph.input[0].name, model.graph.output[0].name
        for tensor in model.graph.initializer:
            array = torch.from_numpy(numpy_helper.to_array(tensor).copy())
            self.register_buffer(_attribute(tensor.name), array)
        self.constants = {tensor.name for tensor in model.graph.initializer}

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        values = {self.first: image}
        for node in self.nodes:
            operands = [
                getattr(self, _attribute(name)) if name in self.constants else values[name]
                for name in node.inputs
            ]
            values[node.output] = _run(node, operands)
        return values[self.last]


def _attribute(name: str) -> str:
    return f"constant_{name}"


def _run(node: _Node, operands: list[torch.Tensor]) -> torch.Tensor:
    run = _RUNS[node.op_type]
    if not node.is_last:
        return run(node, *operands)
    views = [each.permute(FIRST) if each.dim() == len(FIRST) else each for each in operands]
    return run(node, *views).permute(LAST)


def _conv(node: _Node, *operands: torch.Tensor) -> torch.Tensor:
    strides, pads, group = (node.attributes[each] for each in ("strides", "pads", "group"))
    bias = operands[2] if len(operands) > 2 else None
    return F.conv2d(operands[0], operands[1], bias, strides, pads[:2], groups=group)


def _norm(node: _Node, *operands: torch.Tensor) -> torch.Tensor:
    x, scale, shift, mean, variance = operands
    return F.batch_norm(x, mean, variance, scale, shift, eps=node.attributes["epsilon"])


def _max_pool(node: _Node, x: torch.Tensor) -> torch.Tensor:
    kernel, strides, pads = (node.attributes[e] for e in ("kernel_shape", "strides", "pads"))
    return F.max_pool2d(x, kernel, strides, pads[:2])


def _gemm(node: _Node, *operands: torch.Tensor) -> torch.Tensor:
    x, weight, bias = operands
    return torch.addmm(bias, x, weight.t() if node.attributes.get("transB") else weight)


_RUNS: dict[str, Callable[..., torch.Tensor]] = {
    "Conv": _conv,
    "BatchNormalization": _norm,
    "MaxPool": _max_pool,
    "Gemm": _gemm,
    "Relu": lambda _, x: F.relu(x),
    "Add": lambda _, x, y: x + y,
    "Flatten": lambda _, x: torch.flatten(x, 1),
    "GlobalAveragePool": lambda _, x: F.adaptive_avg_pool2d(x, 1),
    "Transpose": lambda node, x: x.permute(node.attributes["perm"]).contiguous(),
}
