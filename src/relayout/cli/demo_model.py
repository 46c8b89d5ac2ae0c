"""A small network of the kind TensorFlow exporters emit, optimised before your eyes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from rich.console import RenderableType

from relayout.layout.layout import NCHW, NHWC
from relayout.optimizer.optimize import optimize
from relayout.report.records import RunRecord
from relayout.report.text import run_text

STORY = (
    "A network as TensorFlow exporters write it: images come as NHWC, ONNX convolutions",
    "want NCHW, so each convolution and pool is wrapped in two Transposes.",
)


def tell(output: str | None = None) -> tuple[bool, dict[str, Any], Iterator[RenderableType]]:
    """Optimise the demonstration model; whether all went well, the record, and what to print."""
    result = optimize(network(), output)
    record = result.record()
    return result.accepted, record.to_json(), _lines(record)


def _lines(record: RunRecord) -> Iterator[RenderableType]:
    yield from STORY
    yield from run_text(record)


def network() -> onnx.ModelProto:
    """NHWC convolutions wrapped in Transposes, a residual, a Flatten and a MatMul."""
    net = _Network()
    stem = net.pool(net.convolution("image", 3, 8))
    inner = net.convolution(net.convolution(stem, 8, 8), 8, 8)
    joined = net.add("Relu", [net.add("Add", [stem, inner])])
    flat = net.add("Flatten", [joined], axis=1)
    weights = net.add("Transpose", [net.constant(10, 8 * 8 * 8)], perm=[1, 0])
    net.nodes.append(helper.make_node("MatMul", [flat, weights], ["scores"], name="scores"))
    graph = helper.make_graph(
        net.nodes,
        "network",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["N", 16, 16, 3])],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["N", 10])],
        net.constants,
    )
    return helper.make_model(
        graph,
        producer_name="relayout demo",
        ir_version=10,
        opset_imports=[helper.make_opsetid("", 17)],
    )


@dataclass(slots=True)
class _Network:
    """Writes a network down node by node."""

    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: list[onnx.TensorProto] = field(default_factory=list)

    def add(self, op_type: str, operands: list[str], **attributes: Any) -> str:
        name = f"{op_type.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(op_type, operands, [name], name=name, **attributes))
        return name

    def constant(self, *shape: int) -> str:
        name = f"weights_{len(self.constants)}"
        values = np.random.default_rng(len(self.constants)).normal(0, 0.1, shape)
        self.constants.append(numpy_helper.from_array(values.astype(np.float32), name))
        return name

    def convolution(self, image: str, channels: int, filters: int) -> str:
        weights, bias = self.constant(filters, channels, 3, 3), self.constant(filters)
        first = self.add("Transpose", [image], perm=NHWC.to(NCHW).axes)
        conv = self.add("Conv", [first, weights, bias], pads=[1, 1, 1, 1])
        return self.add("Transpose", [self.add("Relu", [conv])], perm=NCHW.to(NHWC).axes)

    def pool(self, image: str) -> str:
        first = self.add("Transpose", [image], perm=NHWC.to(NCHW).axes)
        pool = self.add("MaxPool", [first], kernel_shape=[2, 2], strides=[2, 2])
        return self.add("Transpose", [pool], perm=NCHW.to(NHWC).axes)
