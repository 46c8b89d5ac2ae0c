"""Shapes that become known when the arithmetic of shapes has been folded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import onnx
import onnx_ir as ir

from relayout.graph.editing.learning import learn_rank, learn_type, sharpen
from relayout.graph.messages.walk import Body, nested_bodies
from relayout.graph.read import Dim, Shape, is_op, perm_of, shape_of
from relayout.graph.region import subgraphs_of
from relayout.graph.shapes.infer import infer_further
from relayout.graph.shapes.node import is_unreadable, opaque
from relayout.layout.blocks import is_invented
from relayout.ops.lengths.sweep import carry_lengths, has_unnamed_length
from relayout.ops.measure import copying_nodes, moving_transposes

LEARN_RANK, LEARN_SHAPE = "learn a rank", "learn a shape"

LARGEST_KEPT = 1 << 12
"""Larger constants take part with their shape only."""


def refine_shapes(model: ir.Model) -> Counter[str]:
    """Infer once more what is not known yet; shapes that are known stay as they are."""
    refined = Counter({LEARN_RANK: _learn_ranks(model.graph)})
    if not any(map(is_vague, _results(model.graph))):
        return refined
    found = _inferred(model)
    for value in filter(is_vague, _results(model.graph)):
        better = found.get(str(value.name))
        if better is not None:
            learn_type(value, better.kind)
            refined[LEARN_SHAPE] += sharpen(value, better.shape)
    refined[LEARN_SHAPE] += carry_lengths(model)
    return refined


def adopt_shapes(model: ir.Model, informed: ir.Model) -> None:
    """Learn shapes and types from another form of the same model, in which names mean the same.

    A Transpose that the other form does without has the permuted shape of what it reads.
    """
    known = {value.name: value for value in _results(informed.graph)}
    for value in _results(model.graph):
        same = known.get(value.name)
        found = shape_of(same)
        if same is not None:
            learn_type(value, same.type)
        if found is not None and is_vague(value):
            sharpen(value, found)
        node = value.producer()
        order = perm_of(node) if node is not None and is_op(node, "Transpose") else None
        source = None if node is None or order is None else node.inputs[0]
        read = shape_of(source)
        if order is not None and read is not None and len(read) == order.rank and is_vague(value):
            sharpen(value, tuple(read[axis] for axis in order))


def has_vague_moves(model: ir.Model) -> bool:
    """Whether something is moved of which not every length is declared or known."""
    moved = [node.outputs[0] for _, node in moving_transposes(model)]
    moved += [v for _, node in copying_nodes(model) for v in (*node.inputs, *node.outputs) if v]
    return any(map(has_unnamed_length, moved))


def is_vague(value: ir.Value) -> bool:
    """Whether some length is not known as a number."""
    shape = shape_of(value)
    return shape is None or not all(isinstance(length, int) for length in shape)


def _learn_ranks(graph: ir.Graph) -> int:
    """A value that is made where a Transpose always reads it has as many axes as its perm."""
    learned = 0
    for node in (result.producer() for result in _results(graph)):
        order = perm_of(node) if node is not None and is_op(node, "Transpose") else None
        source = None if node is None or order is None else node.inputs[0]
        if node is None or order is None or source is None or source.shape is not None:
            continue
        producer = source.producer()
        if producer is not None and producer.graph is node.graph:
            learn_rank(source, order.rank)
            learn_rank(node.outputs[0], order.rank)
            learned += 1
    return learned


def _results(graph: ir.Graph) -> Iterator[ir.Value]:
    """The results of all nodes, those in bodies of control flow included."""
    waiting = [graph]
    while waiting:
        for node in waiting.pop():
            yield from (value for value in node.outputs if value.name)
            waiting.extend(subgraphs_of(node))


@dataclass(frozen=True, slots=True)
class _Inferred:
    shape: Shape
    kind: ir.TypeProtocol | None


def _inferred(model: ir.Model) -> dict[str, _Inferred]:
    """What is inferred for the model as it is now.

    Names that it makes up are left out: the same name was made up for something else before.
    """
    message = onnx.ModelProto(ir_version=model.ir_version)
    for domain, version in model.opset_imports.items():
        message.opset_import.append(onnx.helper.make_opsetid(domain, version))
    message.graph.CopyFrom(_light_graph(model.graph))
    graphs = nested_bodies(infer_further(message).graph)
    return {name: found for graph in graphs for name, found in _recorded(graph)}


def _recorded(graph: Body) -> Iterator[tuple[str, _Inferred]]:
    """The values of a graph whose ranks are known; an output is as the graph states it."""
    types = {value.name: value.type for value in graph.value_info}
    if isinstance(graph, onnx.GraphProto):
        types |= {value.name: value.type for value in graph.output}
    for name, declared in types.items():
        if declared.HasField("tensor_type") and declared.tensor_type.HasField("shape"):
            lengths = map(_length, declared.tensor_type.shape.dim)
            shape = tuple(None if is_invented(length) else length for length in lengths)
            yield name, _Inferred(shape, ir.serde.deserialize_type_proto_for_type(declared))


def _length(dim: onnx.TensorShapeProto.Dimension) -> Dim:
    if dim.HasField("dim_value"):
        return dim.dim_value if dim.dim_value >= 0 else None
    return dim.dim_param if dim.HasField("dim_param") else None


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
        node=[
            opaque(node) if is_unreadable(node) else ir.serde.serialize_node(node) for node in graph
        ],
        input=[ir.serde.serialize_value(value) for value in values[: len(graph.inputs)]],
        output=[onnx.ValueInfoProto(name=value.name) for value in graph.outputs],
        initializer=constants,
    )


def _light_tensor(tensor: ir.TensorProtocol) -> onnx.TensorProto:
    if tensor.nbytes <= LARGEST_KEPT:
        return ir.serde.serialize_tensor(tensor)
    dims = [int(length) for length in tensor.shape.numpy()]
    return onnx.TensorProto(name=tensor.name or "", data_type=tensor.dtype.value, dims=dims)
