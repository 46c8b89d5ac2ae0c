"""Merges an edited model into the message it was read from, so that what was not edited is kept.

A node, attribute, tensor or record that survived keeps its own message, with all that onnx-ir does
not hold. Only what changed is written anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, MutableSequence, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeGuard

import onnx
import onnx_ir as ir

from relayout.graph.io.bind import ATTRIBUTES, HOLDER, STAND_IN, bodies_in
from relayout.graph.io.model import SOURCE, LoadedModel
from relayout.graph.io.value_records import merge_metadata, merge_records
from relayout.graph.messages.apart import restore_names
from relayout.graph.messages.functions import key_of
from relayout.graph.messages.skeleton import FIRST_WITH_DEFAULTS, without_initializers
from relayout.graph.messages.walk import Body

FUNCTIONS_SINCE = 8
"""The version of the file format from which a model can define functions."""


class TensorWriter(Protocol):
    """Decides where the data of an initialiser goes."""

    def expect(self, tensors: Sequence[ir.TensorProtocol]) -> None:
        """Called with what will be written, in order."""

    def write(self, tensor: ir.TensorProtocol, name: str) -> onnx.TensorProto: ...


class Inline:
    """Writes data into the message itself."""

    def expect(self, tensors: Sequence[ir.TensorProtocol]) -> None:
        """What is in memory need not be read."""

    def write(self, tensor: ir.TensorProtocol, name: str) -> onnx.TensorProto:
        message = ir.serde.serialize_tensor(tensor)
        message.name = name
        return message


@dataclass(frozen=True, slots=True)
class Merged:
    """The message of an edited model, with its constants apart.

    Most of them are those of the given message, and so not in memory once more.
    """

    rest: onnx.ModelProto
    constants: Sequence[onnx.TensorProto] = ()
    """What follows the initialisers of the rest."""

    def message(self) -> onnx.ModelProto:
        """All in one, which is not apart after that."""
        self.rest.graph.initializer.extend(self.constants)
        return self.rest


def stored_anew(loaded: LoadedModel) -> list[str]:
    """The given initialisers that the edited model does not keep as they are."""
    values = loaded.ir.graph.initializers.values()
    tensors = (value.const_value for value in values)
    kept = {id(tensor.meta.get(SOURCE)) for tensor in tensors if tensor is not None}
    return [given.name for given in loaded.source.graph.initializer if id(given) not in kept]


def merged(loaded: LoadedModel, writer: TensorWriter) -> onnx.ModelProto:
    """The message of the edited model."""
    return merged_apart(loaded, writer).message()


def merged_apart(loaded: LoadedModel, writer: TensorWriter) -> Merged:
    """The message of the edited model, with its constants apart where they keep their names."""
    result = without_initializers(loaded.source)
    constants: Sequence[onnx.TensorProto] = loaded.source.graph.initializer
    if loaded.editable is not None:
        merger = _Merger(writer)
        constants = merger.initializers(loaded.ir.graph)
        _merge(result, loaded, merger)
    if not loaded.renamed:
        return Merged(result, constants)
    message = Merged(result, constants).message()
    restore_names(message, loaded.renamed)
    return Merged(message)


def _merge(result: onnx.ModelProto, loaded: LoadedModel, merger: _Merger) -> None:
    _demand_interface(result.graph, loaded.ir.graph)
    merger.body(result.graph, loaded.ir.graph)
    _merge_functions(result, loaded.ir, merger)
    _merge_imports(result, loaded.ir.opset_imports)
    if _has_new_constants(loaded):
        # Older formats have no constants but those that are listed among the inputs.
        result.ir_version = max(result.ir_version, FIRST_WITH_DEFAULTS)


def _has_new_constants(loaded: LoadedModel) -> bool:
    given = {tensor.name for tensor in loaded.source.graph.initializer}
    return any(name not in given for name in loaded.ir.graph.initializers)


class _Merger:
    def __init__(self, writer: TensorWriter) -> None:
        self.writer = writer

    def graph(self, target: onnx.GraphProto, graph: ir.Graph) -> None:
        """Let `target`, a copy of the message `graph` was read from, state what `graph` holds."""
        constants = self.initializers(graph)
        del target.initializer[:]
        target.initializer.extend(constants)
        self.body(target, graph)

    def body(self, target: onnx.GraphProto, graph: ir.Graph) -> None:
        """The same, but for its initialisers."""
        self.nodes(target, graph)
        merge_records(target, graph)

    def nodes(self, target: Body, graph: ir.Graph) -> None:
        messages = [self._node(node) for node in graph if STAND_IN not in node.meta]
        del target.node[:]
        target.node.extend(messages)

    def _node(self, node: ir.Node) -> onnx.NodeProto:
        source: onnx.NodeProto | None = node.meta.get(SOURCE)
        if source is None:
            return self._new_node(node)
        inputs, outputs = _names(node.inputs), _names(node.outputs)
        if _is_untouched(node, source, inputs, outputs):
            return source
        message = onnx.NodeProto()
        message.CopyFrom(source)
        _rename_shardings(message, [*inputs, *outputs])
        _replace(message.input, inputs)
        _replace(message.output, outputs)
        for field in ("op_type", "domain", "overload", "name"):
            if getattr(message, field) != (getattr(node, field) or ""):
                setattr(message, field, getattr(node, field))
        merge_metadata(message.metadata_props, node.metadata_props)
        self._attributes(message, node)
        return message

    def _new_node(self, node: ir.Node) -> onnx.NodeProto:
        message = onnx.NodeProto(
            op_type=node.op_type, input=_names(node.inputs), output=_names(node.outputs)
        )
        for field in ("domain", "overload", "name", "doc_string"):
            if getattr(node, field):
                setattr(message, field, getattr(node, field))
        merge_metadata(message.metadata_props, node.metadata_props)
        self._attributes(message, node)
        return message

    def _attributes(self, message: onnx.NodeProto, node: ir.Node) -> None:
        given = [attribute.name for attribute in message.attribute]
        order = [name for name in dict.fromkeys(given) if name in node.attributes]
        order += [name for name in node.attributes if name not in given]
        messages = [one for name in order for one in self._attribute(node.attributes[name])]
        del message.attribute[:]
        message.attribute.extend(messages)

    def _attribute(self, attribute: ir.Attr) -> Iterable[onnx.AttributeProto]:
        if attribute.type in _BODIES and not attribute.is_ref():
            return [self._bodies(attribute)]
        sources: tuple[onnx.AttributeProto, ...] = attribute.meta.get(SOURCE, ())
        return sources or [_new_attribute(attribute)]

    def _bodies(self, attribute: ir.Attr) -> onnx.AttributeProto:
        graphs = bodies_in(attribute)
        if not graphs or HOLDER not in graphs[0].meta:
            return _new_attribute(attribute)
        message = onnx.AttributeProto()
        message.CopyFrom(graphs[0].meta[HOLDER])
        for target, graph in zip(message.graphs or [message.g], graphs, strict=True):
            _merge_interface(target, graph)
            self.graph(target, graph)
        return message

    def initializers(self, graph: ir.Graph) -> list[onnx.TensorProto]:
        """The given ones that are left, in their places, then new ones."""
        given: Sequence[onnx.TensorProto] = graph.meta[SOURCE].initializer
        known = {tensor.name for tensor in given}
        left = [t for t in reversed(given) if not t.name or t.name in graph.initializers]
        new = [v for name, v in graph.initializers.items() if name not in known]
        # Their data goes to a file in this order.
        values = [graph.initializers[tensor.name] for tensor in left if tensor.name] + new
        self.writer.expect([v.const_value for v in values if _is_new(v.const_value)])
        messages = [
            self._initializer(graph.initializers[tensor.name], tensor) if tensor.name else tensor
            for tensor in left
        ]
        return [*reversed(messages), *(self._initializer(value, None) for value in new)]

    def _initializer(self, value: ir.Value, given: onnx.TensorProto | None) -> onnx.TensorProto:
        """The message of an initialiser: the given one, unless its data or its name is new."""
        tensor, name = value.const_value, value.name or ""
        if tensor is None:
            raise ValueError(f"initialiser {name!r} has no data")
        source: onnx.TensorProto | None = tensor.meta.get(SOURCE)
        if source is None:
            return self.writer.write(tensor, name)
        if source is given:
            return source
        message = onnx.TensorProto()
        message.CopyFrom(source)
        message.name = name
        return message


def _is_new(tensor: ir.TensorProtocol | None) -> TypeGuard[ir.TensorProtocol]:
    """Whether a constant has no message yet."""
    return tensor is not None and SOURCE not in tensor.meta


_BODIES = {ir.AttributeType.GRAPH, ir.AttributeType.GRAPHS}


def _is_untouched(
    node: ir.Node, source: onnx.NodeProto, inputs: list[str], outputs: list[str]
) -> bool:
    attributes = tuple(node.attributes.values())
    return (
        inputs == list(source.input)
        and outputs == list(source.output)
        and len(attributes) == len(node.meta[ATTRIBUTES])
        and all(a is b for a, b in zip(attributes, node.meta[ATTRIBUTES], strict=True))
        and not any(attribute.type in _BODIES for attribute in attributes)
        and node.op_type == source.op_type
        and node.domain == source.domain
        and (node.name or "") == source.name
        and node.metadata_props == {entry.key: entry.value for entry in source.metadata_props}
    )


def _names(values: Iterable[ir.Value | None]) -> list[str]:
    return ["" if value is None else value.name or "" for value in values]


def _new_attribute(attribute: ir.Attr) -> onnx.AttributeProto:
    if attribute.is_ref():
        return ir.serde.serialize_reference_attribute(attribute)
    return ir.serde.serialize_attribute(attribute)


def _replace(field: MutableSequence[str], values: list[str]) -> None:
    if list(field) != values:
        field[:] = values


def _rename_shardings(message: onnx.NodeProto, names: list[str]) -> None:
    """The description of how a node is spread over devices names its operands and results."""
    renamed = dict(zip([*message.input, *message.output], names, strict=False))
    for configuration in message.device_configurations:
        for spec in configuration.sharding_spec:
            spec.tensor_name = renamed.get(spec.tensor_name, spec.tensor_name)


def _demand_interface(target: onnx.GraphProto, graph: ir.Graph) -> None:
    declared = [value.name for value in (*target.input, *target.output)]
    if declared != _names([*graph.inputs, *graph.outputs]):
        raise ValueError(f"the interface of graph {target.name!r} was changed")


def _merge_interface(target: onnx.GraphProto, graph: ir.Graph) -> None:
    """Declare the inputs and outputs of a body that are new; those that are given stay."""
    for declared, values in ((target.input, graph.inputs), (target.output, graph.outputs)):
        for message, value in zip(declared, values, strict=True):
            if message.name != value.name:
                message.CopyFrom(ir.serde.serialize_value(value))


def _merge_functions(result: onnx.ModelProto, model: ir.Model, merger: _Merger) -> None:
    given = [key_of(function) for function in result.functions]
    for index, key in reversed(list(enumerate(given))):
        if key not in model.functions:
            del result.functions[index]
            continue
        function = result.functions[index]
        merger.nodes(function, model.functions[key].graph)
        merge_records(function, model.functions[key].graph)
        _merge_imports(function, model.functions[key].opset_imports)
    new = [function for key, function in model.functions.items() if key not in set(given)]
    result.functions.extend(ir.serde.serialize_function(function) for function in new)
    if new:
        result.ir_version = max(result.ir_version, FUNCTIONS_SINCE)


def _merge_imports(
    holder: onnx.ModelProto | onnx.FunctionProto, versions: Mapping[str, int]
) -> None:
    """Every given import stays, used or not; imports that an edit needed follow."""
    given = {entry.domain for entry in holder.opset_import}
    for domain, version in versions.items():
        if domain not in given:
            holder.opset_import.add(domain=domain, version=version)
