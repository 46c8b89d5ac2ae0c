"""Builds the form that passes edit, and ties each part of it to the message it came from."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import onnx
import onnx_ir as ir

from relayout.graph.io.external import ExternalFiles
from relayout.graph.io.model import SOURCE
from relayout.graph.io.shared_tensor import SharedTensor
from relayout.graph.io.value_types import ValueTypes
from relayout.graph.messages.functions import key_of
from relayout.graph.messages.inferable import is_inferable
from relayout.graph.messages.skeleton import sparse_count
from relayout.graph.messages.walk import Body, bodies_of, is_external

ATTRIBUTES = "relayout.attributes"
"""The key under which a node carries the attributes it was read with."""

HOLDER = "relayout.holder"
"""The key under which a body carries the message of its attribute; cloning a model keeps it."""

STAND_IN = "relayout.stand_in"
"""The key that marks a node which replaces a sparse initialiser and is never written."""


def build(inferred: onnx.ModelProto, source: onnx.ModelProto, files: ExternalFiles) -> ir.Model:
    """The editable form of `source`, with the types that were inferred on its skeleton."""
    soften(inferred)
    with _collector_paused():
        types = ValueTypes(inferred.graph)
        model = ir.from_proto(inferred)
        types.give(model.graph)
        binder = _Binder(files)
        binder.bind(model.graph, source.graph)
        for function in source.functions:
            binder.bind(model.functions[key_of(function)].graph, function)
    return model


@contextmanager
def _collector_paused() -> Iterator[None]:
    """Nothing built here is garbage, and looking for some costs a fifth of the time."""
    running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if running:
            gc.enable()


class _Binder:
    def __init__(self, files: ExternalFiles) -> None:
        self.files = files

    def bind(self, graph: ir.Graph, source: Body) -> None:
        """Tie a body, and recursively what is inside it, to its message."""
        graph.meta[SOURCE] = source
        nodes = iter(graph)
        if isinstance(source, onnx.GraphProto):
            for _ in range(sparse_count(source)):
                next(nodes).meta[STAND_IN] = True
            for tensor in source.initializer:
                if tensor.name:
                    graph.initializers[tensor.name].const_value = self._tensor(tensor)
        for node, message in zip(nodes, source.node, strict=True):
            self._bind_node(node, message)

    def _bind_node(self, node: ir.Node, message: onnx.NodeProto) -> None:
        node.meta[SOURCE] = message
        if not is_inferable(message):
            _take_back(node, message)
        for source in message.attribute:
            self._bind_attribute(node, source)
        node.meta[ATTRIBUTES] = tuple(node.attributes.values())

    def _bind_attribute(self, node: ir.Node, source: onnx.AttributeProto) -> None:
        attribute = node.attributes[source.name]
        if attribute.is_ref() or attribute.type not in _HOLDERS:
            attribute.meta[SOURCE] = (*attribute.meta.get(SOURCE, ()), source)
            return
        if attribute.type == ir.AttributeType.TENSOR:
            attribute = ir.AttrTensor(
                source.name, self._tensor(source.t), doc_string=attribute.doc_string
            )
            node.attributes[source.name] = attribute
        elif attribute.type == ir.AttributeType.TENSORS:
            tensors = [self._tensor(tensor) for tensor in source.tensors]
            attribute = ir.AttrTensors(source.name, tensors, doc_string=attribute.doc_string)
            node.attributes[source.name] = attribute
        else:
            is_one = attribute.type == ir.AttributeType.GRAPH
            messages = [source.g] if is_one else source.graphs
            for graph, message in zip(bodies_in(attribute), messages, strict=True):
                self.bind(graph, message)
                graph.meta[HOLDER] = source
        attribute.meta[SOURCE] = (source,)

    def _tensor(self, source: onnx.TensorProto) -> ir.TensorProtocol:
        tensor = self.files.tensor(source) if is_external(source) else _inline(source)
        tensor.meta[SOURCE] = source
        return tensor


def _take_back(node: ir.Node, message: onnx.NodeProto) -> None:
    """Let a node that was restated for inference be as it was given."""
    node.attributes.clear()
    for source in message.attribute:
        attribute = ir.serde.deserialize_attribute(source)
        node.attributes[attribute.name] = attribute


def _inline(source: onnx.TensorProto) -> ir.TensorProtocol:
    is_text = source.data_type == onnx.TensorProto.STRING
    return ir.serde.deserialize_tensor(source) if is_text else SharedTensor(source)


def bodies_in(attribute: ir.Attr) -> Sequence[ir.Graph]:
    """The graphs that an attribute holds."""
    if attribute.type == ir.AttributeType.GRAPH:
        return [attribute.as_graph()]
    return attribute.as_graphs()


_HOLDERS = {
    ir.AttributeType.TENSOR,
    ir.AttributeType.TENSORS,
    ir.AttributeType.GRAPH,
    ir.AttributeType.GRAPHS,
}


def soften(model: onnx.ModelProto) -> None:
    """Take out what onnx-ir cannot hold; the message of the given model still has it."""
    for body in bodies_of(model):
        values = list(body.value_info)
        if isinstance(body, onnx.GraphProto):
            values += [*body.input, *body.output]
        for value in values:
            if not _can_hold(value.type):
                value.ClearField("type")
        for node in body.node:
            _soften_attributes(node)
    for function in model.functions:
        for default in function.attribute_proto:
            if not _can_hold_attribute(default):
                _hollow_out(default)


def _soften_attributes(node: onnx.NodeProto) -> None:
    names = [attribute.name for attribute in node.attribute]
    repeated = len(set(names)) != len(names)
    for attribute in node.attribute:
        ambiguous = repeated and names.count(attribute.name) > 1
        if ambiguous or not _can_hold_attribute(attribute):
            _hollow_out(attribute)


def _hollow_out(attribute: onnx.AttributeProto) -> None:
    """Leave the name only, so that it is read as an attribute of an unknown type."""
    name = attribute.name
    attribute.Clear()
    attribute.name = name


def _can_hold_attribute(attribute: onnx.AttributeProto) -> bool:
    kind = attribute.type
    if kind not in _DOUBTFUL:
        return True
    if kind in _SPARSE:
        return bool(attribute.ref_attr_name)
    if kind == onnx.AttributeProto.TYPE_PROTO:
        return _can_hold(attribute.tp)
    if kind == onnx.AttributeProto.TYPE_PROTOS:
        return all(_can_hold(declared) for declared in attribute.type_protos)
    return all(_is_text(item) for item in attribute.strings)


_SPARSE = frozenset((onnx.AttributeProto.SPARSE_TENSOR, onnx.AttributeProto.SPARSE_TENSORS))
_DOUBTFUL = _SPARSE | {
    *(onnx.AttributeProto.TYPE_PROTO, onnx.AttributeProto.TYPE_PROTOS),
    onnx.AttributeProto.STRINGS,
}
"""Attributes of other kinds can be held whatever is in them."""


def _is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


_DATA_TYPES = {int(dtype) for dtype in ir.DataType if dtype != ir.DataType.UNDEFINED}


def _can_hold(declared: onnx.TypeProto) -> bool:
    """Whether onnx-ir knows a type: no maps, no opaque types, no unknown element types."""
    kind = declared.WhichOneof("value")
    if kind in {"tensor_type", "sparse_tensor_type"}:
        return getattr(declared, kind).elem_type in _DATA_TYPES
    if kind in {"sequence_type", "optional_type"}:
        element = getattr(declared, kind).elem_type
        return element.WhichOneof("value") is not None and _can_hold(element)
    return kind is None
