"""Parts of a model: from some of its tensors to one of them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import helper

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class TensorForm:
    """The type and the lengths of a tensor."""

    element: int
    shape: tuple[int, ...]

    @classmethod
    def of(cls, array: Array) -> TensorForm:
        return cls(helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)

    def port(self, name: str) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(name, self.element, self.shape)


def reads(node: onnx.NodeProto) -> Iterator[str]:
    """What a node reads, and what its bodies read from around it."""
    yield from (name for name in node.input if name)
    for attribute in node.attribute:
        for body in [attribute.g] if attribute.HasField("g") else attribute.graphs:
            own = {name for inner in body.node for name in inner.output}
            own |= {port.name for port in body.input} | {t.name for t in body.initializer}
            found = [name for inner in body.node for name in reads(inner)]
            found += [output.name for output in body.output]
            yield from (name for name in found if name not in own)


def makers(graph: onnx.GraphProto) -> dict[str, onnx.NodeProto]:
    return {name: node for node in graph.node for name in node.output if name}


def cone(graph: onnx.GraphProto, end: str, cuts: Collection[str]) -> tuple[list[Any], set[str]]:
    """The nodes that a tensor is made by, back to the cuts, and all that they read from there."""
    made, wanted, kept, met = makers(graph), [end], set[int](), set[str]()
    while wanted:
        name = wanted.pop()
        if name in met:
            continue
        met.add(name)
        node = made.get(name)
        if node is None or (name in cuts and name != end):
            continue
        kept.add(id(node))
        wanted += reads(node)
    return [node for node in graph.node if id(node) in kept], met


def part(
    model: onnx.ModelProto, end: str, inputs: Mapping[str, TensorForm], form: TensorForm
) -> onnx.ModelProto:
    """The model that makes a tensor of others, of the forms that they had in a run."""
    result = onnx.ModelProto()
    result.CopyFrom(model)
    graph = result.graph
    nodes, met = cone(graph, end, inputs)
    kept = [onnx.NodeProto.FromString(node.SerializeToString()) for node in nodes]
    held = [t for t in graph.initializer if t.name in met and t.name not in inputs]
    stored = [onnx.TensorProto.FromString(t.SerializeToString()) for t in held]
    for field in ("node", "initializer", "input", "output", "value_info"):
        graph.ClearField(field)
    graph.node.extend(kept)
    graph.initializer.extend(stored)
    graph.input.extend(inputs[name].port(name) for name in sorted(inputs))
    graph.output.append(form.port(end))
    return result


def without(model: onnx.ModelProto, output: str, instead: str) -> onnx.ModelProto:
    """The model with a tensor replaced by another one."""
    result = onnx.ModelProto()
    result.CopyFrom(model)
    for node in result.graph.node:
        _rename(node, output, instead)
    return result


def _rename(node: onnx.NodeProto, old: str, new: str) -> None:
    node.input[:] = [new if name == old else name for name in node.input]
    for attribute in node.attribute:
        for body in [attribute.g] if attribute.HasField("g") else attribute.graphs:
            for inner in body.node:
                _rename(inner, old, new)
