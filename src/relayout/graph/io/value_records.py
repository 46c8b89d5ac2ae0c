"""What a body records about its values by name: types, quantisation, how they are spread."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, MutableSequence
from typing import TypeVar

import onnx
import onnx_ir as ir

from relayout.graph.io.model import SOURCE
from relayout.graph.messages.walk import Body

_Record = TypeVar("_Record")


def merge_records(target: Body, graph: ir.Graph) -> None:
    """Drop the records of values that are gone; record new ones if the given ones were."""
    source: Body = graph.meta[SOURCE]
    before, now = set(_source_names(source)), set(_names(graph))
    gone = before - now
    recorded = bool(target.value_info)
    _drop(target.value_info, [value.name in gone for value in source.value_info])
    if isinstance(target, onnx.GraphProto) and isinstance(source, onnx.GraphProto):
        annotations = source.quantization_annotation
        _drop(target.quantization_annotation, [note.tensor_name in gone for note in annotations])
    if recorded:
        symbols = declared_symbols(source)
        target.value_info.extend(
            record_of(value, symbols) for value in _inner_values(graph) if value.name not in before
        )


def merge_metadata(
    target: MutableSequence[onnx.StringStringEntryProto], values: Mapping[str, str]
) -> None:
    """Keep the entries that are still true in their places and add the others after them."""
    given = {entry.key: entry.value for entry in target}
    _drop(target, [values.get(entry.key) != given[entry.key] for entry in target])
    for key, value in values.items():
        if given.get(key) != value:
            target.append(onnx.StringStringEntryProto(key=key, value=value))


def _drop(records: MutableSequence[_Record], marks: Iterable[bool]) -> None:
    for index, marked in reversed(list(enumerate(marks))):
        if marked:
            del records[index]


def _source_names(body: Body) -> Iterator[str]:
    if isinstance(body, onnx.GraphProto):
        yield from (value.name for value in body.input)
        yield from (tensor.name for tensor in body.initializer)
        yield from (sparse.values.name for sparse in body.sparse_initializer)
    for node in body.node:
        yield from node.output


def _names(graph: ir.Graph) -> Iterator[str | None]:
    yield from (value.name for value in graph.inputs)
    yield from graph.initializers
    for node in graph:
        yield from (value.name for value in node.outputs)


def _inner_values(graph: ir.Graph) -> Iterator[ir.Value]:
    """The results of nodes, with known types, that are not part of the interface."""
    for node in graph:
        for value in node.outputs:
            if value.name and value.type is not None and not value.is_graph_output():
                yield value


def record_of(value: ir.Value, symbols: set[str]) -> onnx.ValueInfoProto:
    """The record of a new value.

    Symbols that only inference made up stay out: the file may use the same name for something else.
    """
    message = ir.serde.serialize_value(value)
    for dim in message.type.tensor_type.shape.dim:
        if dim.HasField("dim_param") and dim.dim_param not in symbols:
            dim.ClearField("dim_param")
    return message


def declared_symbols(body: Body) -> set[str]:
    if not isinstance(body, onnx.GraphProto):
        return set()
    return {dim.dim_param for value in body.input for dim in value.type.tensor_type.shape.dim}
