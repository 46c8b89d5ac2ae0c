"""Shapes that become known when the arithmetic of shapes has been folded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import onnx
import onnx_ir as ir

from relayout.graph.infer import infer_further
from relayout.graph.read import shape_of
from relayout.graph.region import subgraphs_of

LARGEST_KEPT = 1 << 12
"""Larger constants take part with their shape only."""


def refine_shapes(model: ir.Model) -> Counter[str]:
    """Infer once more what is not known yet; shapes that are known stay as they are."""
    refined: Counter[str] = Counter()
    if not any(_is_vague(value) for value in _results(model.graph)):
        return refined
    found = _inferred(model)
    for value in _results(model.graph):
        better = found.get(value.name or "")
        if better is not None and _is_vague(value) and _sharpen(value, better):
            refined["learn a shape"] += 1
    return refined


def _results(graph: ir.Graph) -> Iterator[ir.Value]:
    """The results of all nodes, those in bodies of control flow included."""
    waiting = [graph]
    while waiting:
        for node in waiting.pop():
            yield from (value for value in node.outputs if value.name)
            waiting.extend(subgraphs_of(node))


def _is_vague(value: ir.Value) -> bool:
    shape = shape_of(value)
    return shape is None or not all(isinstance(length, int) for length in shape)


def _sharpen(value: ir.Value, found: ir.Shape) -> bool:
    """Take over lengths that were not known; whether there were any."""
    if value.shape is None:
        value.shape = found
        return True
    if len(value.shape) != len(found):
        return False
    old = list(value.shape)
    new = [
        b if isinstance(b, int) and not isinstance(a, int) else a
        for a, b in zip(old, found, strict=True)
    ]
    value.shape = ir.Shape(new)
    return new != old


def _inferred(model: ir.Model) -> dict[str, ir.Shape]:
    message = onnx.ModelProto(ir_version=model.ir_version)
    for domain, version in model.opset_imports.items():
        message.opset_import.append(onnx.helper.make_opsetid(domain, version))
    message.graph.CopyFrom(_light_graph(model.graph))
    result = ir.from_proto(infer_further(message))
    return {
        str(value.name): value.shape for value in _results(result.graph) if value.shape is not None
    }


def _light_graph(graph: ir.Graph) -> onnx.GraphProto:
    """A graph without the data of its large constants."""
    values = [*graph.inputs, *graph.outputs]
    inputs = {value.name for value in graph.inputs}
    constants = [
        _light_tensor(tensor)
        for name, value in graph.initializers.items()
        if (tensor := value.const_value) is not None and name not in inputs
    ]
    return onnx.GraphProto(
        name=graph.name or "graph",
        node=[ir.to_proto(node) for node in graph],
        input=[ir.to_proto(value) for value in values[: len(graph.inputs)]],
        output=[onnx.ValueInfoProto(name=value.name) for value in graph.outputs],
        initializer=constants,
    )


def _light_tensor(tensor: ir.TensorProtocol) -> onnx.TensorProto:
    if tensor.nbytes <= LARGEST_KEPT:
        return ir.to_proto(tensor)
    dims = [int(length) for length in tensor.shape.numpy()]
    return onnx.TensorProto(name=tensor.name or "", data_type=tensor.dtype.value, dims=dims)
