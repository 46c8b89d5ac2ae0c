"""A light copy of a model for shape inference: all structure, no large data, nothing untrusted."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TypeAlias

import onnx
from google.protobuf.unknown_fields import UnknownFieldSet

from relayout.graph.messages.inferable import make_inferable
from relayout.graph.messages.walk import bodies_of, is_external

SMALL = 1024
"""Tensors of at most this many bytes keep their data, which inference may read."""

FIRST_WITH_DEFAULTS = 4
"""Before this IR version every initialiser had to be listed as an input and was a constant."""

_INTEGERS = {onnx.TensorProto.INT32, onnx.TensorProto.INT64}
_Fields: TypeAlias = onnx.ModelProto | onnx.GraphProto
_HEAVY = {"initializer", "sparse_initializer", "value_info", "quantization_annotation"}


def skeleton_of(model: onnx.ModelProto) -> onnx.ModelProto:
    """A copy without large data, recorded shapes of inner values, or sparse initialisers.

    A sparse initialiser becomes a Constant before the other nodes, because onnx-ir has no other way
    to state that a name holds a sparse tensor.
    """
    result = onnx.ModelProto()
    copy_fields(model, result, skip={"graph", "training_info"})
    copy_fields(model.graph, result.graph, skip=_HEAVY)
    defaults = _overridable_names(model)
    result.graph.initializer.extend(
        _hollow(tensor) if tensor.name in defaults else _light(tensor)
        for tensor in model.graph.initializer
    )
    _sparse_as_constants(model.graph, result.graph)
    for function in result.functions:
        del function.value_info[:]
    for body in list(bodies_of(result)):
        if isinstance(body, onnx.GraphProto):
            _lighten(body)
        _lighten_attributes(body.node)
    return result


def sparse_count(graph: onnx.GraphProto) -> int:
    """How many nodes a skeleton has in front of those of the graph it was made of."""
    return len(graph.sparse_initializer)


def _lighten(graph: onnx.GraphProto) -> None:
    del graph.value_info[:]
    for tensor in graph.initializer:
        if _is_heavy(tensor):
            tensor.CopyFrom(_light(tensor))
    if graph.sparse_initializer:
        _sparse_as_constants(graph, graph)
        del graph.sparse_initializer[:]


def _lighten_attributes(nodes: Iterable[onnx.NodeProto]) -> None:
    for node in nodes:
        make_inferable(node)
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.TENSOR and _is_heavy(attribute.t):
                attribute.t.CopyFrom(_light(attribute.t))


def _sparse_as_constants(source: onnx.GraphProto, target: onnx.GraphProto) -> None:
    if not source.sparse_initializer:
        return
    constants = [
        onnx.helper.make_node("Constant", [], [sparse.values.name], sparse_value=sparse)
        for sparse in source.sparse_initializer
    ]
    nodes = [*constants, *target.node]
    del target.node[:]
    target.node.extend(nodes)


def _overridable_names(model: onnx.ModelProto) -> set[str]:
    """Initialisers that are only defaults: a shape must not depend on their values."""
    if model.ir_version < FIRST_WITH_DEFAULTS:
        return set()
    return {value.name for value in model.graph.input}


def _light(tensor: onnx.TensorProto) -> onnx.TensorProto:
    return _hollow(tensor) if _is_heavy(tensor) else tensor


def _hollow(tensor: onnx.TensorProto) -> onnx.TensorProto:
    return onnx.TensorProto(name=tensor.name, data_type=tensor.data_type, dims=tensor.dims)


def _is_heavy(tensor: onnx.TensorProto) -> bool:
    """Whether inference can do without the data: it reads small tensors and lists of integers."""
    if is_external(tensor):
        return True
    if tensor.data_type == onnx.TensorProto.STRING:
        return False
    if tensor.data_type in _INTEGERS and len(tensor.dims) < 2:
        return False
    size: int = tensor.ByteSize()
    return size > SMALL


def without_initializers(model: onnx.ModelProto) -> onnx.ModelProto:
    """A copy of all but the constants of the main graph."""
    result = onnx.ModelProto()
    if has_unknown(model):
        result.CopyFrom(model)
        del result.graph.initializer[:]
        return result
    copy_fields(model, result, skip={"graph"})
    copy_fields(model.graph, result.graph, skip={"initializer"})
    return result


def has_unknown(model: onnx.ModelProto) -> bool:
    """Whether there are fields without names, whose place is not known."""
    return any(len(UnknownFieldSet(each)) for each in (model, model.graph))


def copy_fields(source: _Fields, target: _Fields, skip: Collection[str]) -> None:
    """All fields but some."""
    for descriptor, value in source.ListFields():
        if descriptor.name in skip:
            continue
        if descriptor.is_repeated:
            getattr(target, descriptor.name).extend(value)
        elif descriptor.message_type is not None:
            getattr(target, descriptor.name).CopyFrom(value)
        else:
            setattr(target, descriptor.name, value)
