"""Walks over the messages of a model; none of them opens a file or follows a name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

import onnx

from relayout.errors import BadModelError, quoted

Body: TypeAlias = onnx.GraphProto | onnx.FunctionProto
"""A list of nodes: the main graph, a body of control flow, or a function."""

DEEPEST = 32
"""Bodies nested deeper than this are refused; parsers of the format give up there too."""


def bodies_of(model: onnx.ModelProto) -> Iterator[Body]:
    """Every body, outer ones before the ones they contain; training graphs are not among them."""
    yield from nested_bodies(model.graph)
    for function in model.functions:
        yield from nested_bodies(function)


def nested_bodies(body: Body) -> Iterator[Body]:
    """A body, then those inside it."""
    waiting: list[tuple[Body, int]] = [(body, 1)]
    while waiting:
        current, depth = waiting.pop()
        if depth > DEEPEST:
            raise BadModelError(f"bodies of control flow are nested more than {DEEPEST} deep")
        yield current
        holders = [
            attribute
            for node in current.node
            for attribute in node.attribute
            if attribute.type in _BODY_KINDS
        ]
        inner = [(graph, depth + 1) for holder in holders for graph in _bodies_in(holder)]
        waiting.extend(reversed(inner))


def subgraphs_of(node: onnx.NodeProto) -> list[onnx.GraphProto]:
    """The bodies a node carries in its attributes."""
    holders = [attribute for attribute in node.attribute if attribute.type in _BODY_KINDS]
    return [graph for holder in holders for graph in _bodies_in(holder)]


_BODY_KINDS = {onnx.AttributeProto.GRAPH, onnx.AttributeProto.GRAPHS}


def _bodies_in(attribute: onnx.AttributeProto) -> Sequence[onnx.GraphProto]:
    if attribute.type == onnx.AttributeProto.GRAPHS:
        return list(attribute.graphs)
    return () if attribute.ref_attr_name else (attribute.g,)


def described(node: onnx.NodeProto) -> str:
    """A node as an error names it: by its name or, without one, by its first result."""
    if node.name or not node.output:
        return f"{quoted(node.op_type)} node {quoted(node.name)}"
    return f"{quoted(node.op_type)} node of {quoted(node.output[0])}"


def tensors_of(model: onnx.ModelProto) -> Iterator[tuple[onnx.TensorProto, str]]:
    """Every tensor of a model, wherever it is kept, with a description of the place."""
    for body in _all_bodies(model):
        yield from _own_tensors(body)


def is_external(tensor: onnx.TensorProto) -> bool:
    return tensor.data_location == onnx.TensorProto.EXTERNAL


def _all_bodies(model: onnx.ModelProto) -> Iterator[Body]:
    yield from bodies_of(model)
    for info in model.training_info:
        yield from nested_bodies(info.initialization)
        yield from nested_bodies(info.algorithm)


def _own_tensors(body: Body) -> Iterator[tuple[onnx.TensorProto, str]]:
    if isinstance(body, onnx.GraphProto):
        for tensor in body.initializer:
            yield tensor, "initialiser"
        for sparse in body.sparse_initializer:
            yield from _sparse_tensors(sparse, "sparse initialiser")
    else:
        for default in body.attribute_proto:
            yield from _attribute_tensors(default, f"default of attribute {quoted(default.name)}")
    for node in body.node:
        for attribute in node.attribute:
            if attribute.type in _TENSOR_KINDS:
                yield from _attribute_tensors(attribute, _place(node, attribute))


_TENSOR_KINDS = {
    onnx.AttributeProto.TENSOR,
    onnx.AttributeProto.TENSORS,
    onnx.AttributeProto.SPARSE_TENSOR,
    onnx.AttributeProto.SPARSE_TENSORS,
}


def _attribute_tensors(
    attribute: onnx.AttributeProto, place: str
) -> Iterator[tuple[onnx.TensorProto, str]]:
    if attribute.ref_attr_name:
        return
    if attribute.type == onnx.AttributeProto.TENSOR:
        yield attribute.t, place
    for tensor in attribute.tensors:
        yield tensor, place
    if attribute.type == onnx.AttributeProto.SPARSE_TENSOR:
        yield from _sparse_tensors(attribute.sparse_tensor, place)
    for sparse in attribute.sparse_tensors:
        yield from _sparse_tensors(sparse, place)


def _sparse_tensors(
    sparse: onnx.SparseTensorProto, place: str
) -> Iterator[tuple[onnx.TensorProto, str]]:
    yield sparse.values, f"{place}, values"
    yield sparse.indices, f"{place}, indices"


def _place(node: onnx.NodeProto, attribute: onnx.AttributeProto) -> str:
    return f"attribute {quoted(attribute.name)} of {described(node)}"
