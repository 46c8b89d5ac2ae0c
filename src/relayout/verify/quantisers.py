"""The quantisers of a model, as far as they can be read from its file."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import onnx
from onnx import numpy_helper

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

DOMAINS = ("", "ai.onnx", "com.microsoft")
WHOLE = frozenset(("ConvInteger", "DynamicQuantizeLinear", "MatMulInteger"))

Grid: TypeAlias = tuple[bytes | str, bytes | str]
"""The scale and the zero point of a quantiser, by their bytes, or by name if they are computed."""


def quantisers_of(model: onnx.ModelProto, folder: Path) -> Counter[Grid]:
    """The operators of a model that round to whole numbers, by the grid they round to."""
    constants = Constants.of(model.graph, folder)
    bodies = (node for function in model.functions for node in function.node)
    return Counter(
        constants.grid(node) if is_op(node, "QuantizeLinear") else (node.op_type, "")
        for node in (*nodes_of(model.graph), *bodies)
        if rounds(node) and not is_op(node, "DequantizeLinear")
    )


@dataclass(frozen=True)
class Constants:
    """The tensors of a graph that no caller can replace."""

    tensors: dict[str, onnx.TensorProto]
    folder: Path
    """Where external data lies."""

    @classmethod
    def of(cls, graph: onnx.GraphProto, folder: Path) -> Constants:
        inputs = {value.name for value in graph.input}
        found = {one.name: one for one in graph.initializer if one.name not in inputs}
        for node in graph.node:
            if is_op(node, "Constant") and node.attribute[0].name == "value":
                found[node.output[0]] = node.attribute[0].t
        return cls(found, folder)

    def array(self, name: str) -> Any:
        """The numbers of a constant; None if the value is not constant."""
        tensor = self.tensors.get(name)
        return None if tensor is None else numpy_helper.to_array(tensor, str(self.folder))

    def grid(self, node: onnx.NodeProto) -> Grid:
        """What a node quantises to, or makes real again; no zero point is one that is zero."""
        scale, zero = self._bytes(node.input[1]), self._bytes(zero_point(node))
        is_zero = isinstance(zero, bytes) and not any(zero)
        return scale, "" if is_zero else zero

    def _bytes(self, name: str) -> bytes | str:
        array = self.array(name)
        return name if array is None else bytes(array.tobytes())


def zero_point(node: onnx.NodeProto) -> str:
    """The name of a quantiser's zero point, if it has one."""
    return node.input[2] if len(node.input) > 2 else ""


def is_op(node: onnx.NodeProto, *op_types: str) -> bool:
    return node.op_type in op_types and node.domain in DOMAINS


def rounds(node: onnx.NodeProto) -> bool:
    """Whether a node has to do with numbers that are whole because they were rounded."""
    is_pair = is_op(node, "QuantizeLinear", "DequantizeLinear")
    return is_pair or node.op_type in WHOLE or node.op_type.startswith("QLinear")


def bodies_of(node: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    for attribute in node.attribute:
        yield from (*((attribute.g,) if attribute.HasField("g") else ()), *attribute.graphs)


def nodes_of(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    """The nodes of a graph and of the bodies in it."""
    for node in graph.node:
        yield node
        for body in bodies_of(node):
            yield from nodes_of(body)


def graphs_of(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    """A graph and the bodies in it."""
    yield graph
    for node in graph.node:
        for body in bodies_of(node):
            yield from graphs_of(body)


def tensors_of(graph: onnx.GraphProto) -> Iterator[onnx.TensorProto]:
    """The tensors that a graph and the bodies in it store."""
    for one in graphs_of(graph):
        yield from one.initializer
        for node in one.node:
            for attribute in node.attribute:
                yield from (
                    *((attribute.t,) if attribute.HasField("t") else ()),
                    *attribute.tensors,
                )


def captured_by(node: onnx.NodeProto) -> Iterator[str]:
    """The names that bodies of a node read, wherever these are given."""
    for body in bodies_of(node):
        yield from (name for inner in nodes_of(body) for name in inner.input)
        yield from (value.name for value in body.output)
