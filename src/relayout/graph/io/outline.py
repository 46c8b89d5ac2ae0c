"""Moves nodes of a model into functions of it, message by message.

The nodes keep their messages, and values their names, inside the functions. Where everything was is
recorded, so that `inlined` can put it back exactly.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, MutableSequence, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

import onnx
import onnx_ir as ir

from relayout.graph.editing.writer import ORIGIN_KEY
from relayout.graph.io.bind import STAND_IN
from relayout.graph.io.homes import Homes, Outline, homes_of
from relayout.graph.io.limits import standard_name
from relayout.graph.io.merge import FUNCTIONS_SINCE
from relayout.graph.io.model import SOURCE, LoadedModel
from relayout.graph.io.places import (
    INITIALIZERS,
    IR_VERSION,
    NODES,
    ORDER,
    PRIMITIVE,
    VALUE_INFO,
    places_text,
)
from relayout.graph.io.value_records import declared_symbols, record_of
from relayout.graph.messages.scoping import runnable_order
from relayout.graph.messages.walk import Body, nested_bodies, subgraphs_of

Holder: TypeAlias = onnx.ModelProto | onnx.FunctionProto
"""What imports operator sets."""

_Item = TypeVar("_Item")


def outlined(
    loaded: LoadedModel, outlines: Mapping[ir.Graph, Sequence[Outline]], domain: str
) -> onnx.ModelProto:
    """The message of a model in which each outline is a function of the domain and one call."""
    result = onnx.ModelProto()
    result.CopyFrom(loaded.source)
    wanted = {id(graph.meta[SOURCE]): (graph, found) for graph, found in outlines.items() if found}
    functions: list[onnx.FunctionProto] = []
    for source, function in zip(loaded.source.functions, list(result.functions), strict=True):
        # Some runtimes want a function to be defined before the one that calls it.
        functions += [*_edited(source, function, function, wanted, domain), function]
    functions += _edited(loaded.source.graph, result.graph, result, wanted, domain)
    if len(functions) == len(result.functions):
        return result
    del result.functions[:]
    result.functions.extend(functions)
    # Runtimes that expand functions meet the calls inside them in the main graph.
    _import(domain, result)
    if result.ir_version < FUNCTIONS_SINCE:
        result.metadata_props.add(key=IR_VERSION, value=str(result.ir_version))
        result.ir_version = FUNCTIONS_SINCE
    return result


def _edited(
    source: Body,
    target: Body,
    holder: Holder,
    wanted: Mapping[int, tuple[ir.Graph, Sequence[Outline]]],
    domain: str,
) -> list[onnx.FunctionProto]:
    """Edit a body and those inside it; the new functions."""
    pairs = zip(list(nested_bodies(source)), list(nested_bodies(target)), strict=True)
    found = [(*wanted[id(given)], copy) for given, copy in pairs if id(given) in wanted]
    functions: list[onnx.FunctionProto] = []
    # Inner bodies first: an edit copies the nodes of its body, and what is inside them.
    for graph, outlines, body in reversed(found):
        homes = homes_of(graph, outlines, _pinned(body))
        functions = [*_Taking(graph, body, homes, holder, domain).take(outlines), *functions]
    if functions:
        _import(domain, holder)
    return functions


def _import(domain: str, holder: Holder) -> None:
    if domain not in {entry.domain for entry in holder.opset_import}:
        holder.opset_import.add(domain=domain, version=1)


def _pinned(body: Body) -> set[str]:
    """The initialisers that notes about quantisation refer to."""
    notes = [] if isinstance(body, onnx.FunctionProto) else body.quantization_annotation
    return {entry.value for note in notes for entry in note.quant_parameter_tensor_names}


@dataclass(slots=True)
class _FunctionPart:
    """A node of a function; without a place it is only a copy."""

    place: int | None
    node: onnx.NodeProto


class _Taking:
    """Takes the parts of functions out of one body."""

    def __init__(
        self, graph: ir.Graph, body: Body, homes: Homes, holder: Holder, domain: str
    ) -> None:
        self.body = body
        self.homes = homes
        self.holder = holder
        self.domain = domain
        nodes = (node for node in graph if STAND_IN not in node.meta)
        self.places = {node: place for place, node in enumerate(nodes)}
        initializers = [] if isinstance(body, onnx.FunctionProto) else body.initializer
        self.initializers = {tensor.name: place for place, tensor in enumerate(initializers)}
        self.records: dict[str, list[int]] = defaultdict(list)
        for place, record in enumerate(body.value_info):
            self.records[record.name].append(place)
        self.moved_records: list[int] = []
        self.symbols = declared_symbols(body)

    def take(self, outlines: Sequence[Outline]) -> list[onnx.FunctionProto]:
        """The functions; the body is left with their calls."""
        functions = [self._function(outline) for outline in outlines]
        self._write_nodes(outlines, functions)
        _delete(self.body.value_info, self.moved_records)
        if isinstance(self.body, onnx.GraphProto):
            values = (part for part in self.homes if isinstance(part, ir.Value))
            _delete(self.body.initializer, [self.initializers[v.name or ""] for v in values])
        return functions

    # the functions

    def _function(self, outline: Outline) -> onnx.FunctionProto:
        head = [self._initializer(v, outline) for v in outline.constants if v.producer() is None]
        parts = [self._node(node, outline) for node in self._nodes(outline)]
        nodes = [part.node for part in (*head, *parts)]
        places = self._records([*head, *parts], outline)
        records = [self.body.value_info[place] for place in places]
        records += self._new_records(outline, {record.name for record in records})
        function = onnx.FunctionProto(
            domain=self.domain,
            name=outline.name,
            input=[value.name or "" for value in outline.inputs],
            output=[value.name or "" for value in outline.outputs],
            attribute=list(_references(nodes)),
            node=nodes,
            opset_import=self._imports(nodes),
            value_info=records,
        )
        notes = {
            PRIMITIVE: "1",
            **outline.notes,
            NODES: places_text(part.place for part in parts),
            INITIALIZERS: places_text(part.place for part in head),
            VALUE_INFO: places_text([*places, *[None] * (len(records) - len(places))]),
        }
        for key, text in notes.items():
            if text:
                function.metadata_props.add(key=key, value=text)
        return function

    def _initializer(self, value: ir.Value, outline: Outline) -> _FunctionPart:
        owned = self.homes.get(value) is outline
        return _FunctionPart(
            self.initializers[value.name or ""] if owned else None, _constant(value)
        )

    def _nodes(self, outline: Outline) -> list[ir.Node]:
        """The nodes of a function in their given order, constants of outer graphs first."""
        constants = (value.producer() for value in outline.constants)
        nodes = [*filter(None, constants), *outline.nodes]
        return sorted(nodes, key=lambda node: self.places.get(node, -1))

    def _node(self, node: ir.Node, outline: Outline) -> _FunctionPart:
        place = self.places.get(node)
        message = node.meta[SOURCE] if place is None else self.body.node[place]
        return _FunctionPart(place if self.homes.get(node) is outline else None, message)

    def _imports(self, nodes: Iterable[onnx.NodeProto]) -> list[onnx.OperatorSetIdProto]:
        used = {standard_name(node.domain) for node in _with_inner(nodes)}
        return [entry for entry in self.holder.opset_import if standard_name(entry.domain) in used]

    def _records(self, parts: Iterable[_FunctionPart], outline: Outline) -> list[int]:
        """Where the body records the types of values that now only the function has."""
        names = [name for part in parts if part.place is not None for name in part.node.output]
        outputs = {value.name for value in outline.outputs}
        inner = [name for name in names if name not in outputs]
        places = sorted(place for name in inner for place in self.records.get(name, ()))
        self.moved_records += places
        return places

    def _new_records(
        self, outline: Outline, recorded: Collection[str]
    ) -> Iterator[onnx.ValueInfoProto]:
        """The types of all other values of the function, which has no other place for them."""
        results = (value for node in outline.nodes for value in node.outputs)
        for value in (*outline.inputs, *results):
            if value.name and value.type is not None and value.name not in recorded:
                yield record_of(value, self.symbols)

    # the body

    def _write_nodes(
        self, outlines: Sequence[Outline], functions: Sequence[onnx.FunctionProto]
    ) -> None:
        """Each call takes the place of the last of its nodes, or a later one if it has to."""
        entries: list[tuple[int, bool, onnx.NodeProto]] = [
            (place, True, self.body.node[place])
            for node, place in self.places.items()
            if node not in self.homes
        ]
        for outline, function in zip(outlines, functions, strict=True):
            last = max(
                self.places[node] for node in outline.nodes if self.homes.get(node) is outline
            )
            entries.append((last, False, _call(outline, function)))
        entries.sort(key=lambda entry: entry[0])
        _replace(self.body, [message for _, _, message in entries])
        order = runnable_order(self.body)
        _replace(self.body, [self.body.node[index] for index in order])
        kept = [entries[index][0] for index in order if entries[index][1]]
        if kept != sorted(kept):
            self.body.metadata_props.add(key=ORDER, value=places_text(kept))


def _call(outline: Outline, function: onnx.FunctionProto) -> onnx.NodeProto:
    call = onnx.NodeProto(
        name=function.name,
        domain=function.domain,
        op_type=function.name,
        input=function.input,
        output=function.output,
    )
    for name, kind in _references(function.node).items():
        call.attribute.add(name=name, ref_attr_name=name, type=kind)
    names = [node.name or node.op_type for node in outline.nodes]
    call.metadata_props.add(key=ORIGIN_KEY, value=", ".join(names))
    return call


def _references(
    nodes: Iterable[onnx.NodeProto],
) -> dict[str, int]:
    """The attributes of the surrounding function that nodes refer to, with their types."""
    attributes = (attribute for node in _with_inner(nodes) for attribute in node.attribute)
    return {a.ref_attr_name: a.type for a in attributes if a.ref_attr_name}


def _with_inner(nodes: Iterable[onnx.NodeProto]) -> Iterator[onnx.NodeProto]:
    """Nodes, and those in their bodies."""
    for node in nodes:
        yield node
        for graph in subgraphs_of(node):
            yield from (inner for body in nested_bodies(graph) for inner in body.node)


def _constant(value: ir.Value) -> onnx.NodeProto:
    """An initialiser as a node; the tensor keeps its message."""
    if value.const_value is None:
        raise ValueError(f"{value.name!r} is not a constant")
    tensor: onnx.TensorProto = value.const_value.meta[SOURCE]
    node = onnx.NodeProto(op_type="Constant", output=[value.name or ""])
    node.attribute.add(name="value", type=onnx.AttributeProto.TENSOR, t=tensor)
    return node


def _replace(body: Body, nodes: Sequence[onnx.NodeProto]) -> None:
    del body.node[:]
    body.node.extend(nodes)


def _delete(items: MutableSequence[_Item], places: Iterable[int]) -> None:
    for place in sorted(places, reverse=True):
        del items[place]
