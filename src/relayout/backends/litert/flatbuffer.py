"""A graph as the bytes of a .tflite file, by the schema that LiteRT carries."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as schema

from relayout.backends.litert.builtins import OPTIONS, version_of
from relayout.backends.litert.flat_graph import FlatGraph, FlatOperator, FlatTensor, Quantisation
from relayout.errors import RelayoutError
from relayout.graph.io.version import __version__

SCHEMA_VERSION = 3
IDENTIFIER = b"TFL3"
SIGNATURE = "serving_default"
METADATA = "relayout"
NOT_GIVEN = -1
LARGEST_FILE = 2**31 - 1
"""Offsets in a flatbuffer have 31 bits."""

TYPES: dict[np.dtype[Any], int] = {
    np.dtype(kind): getattr(schema.TensorType, name)
    for kind, name in (
        (np.float32, "FLOAT32"),
        (np.float16, "FLOAT16"),
        (np.float64, "FLOAT64"),
        (np.int8, "INT8"),
        (np.int16, "INT16"),
        (np.int32, "INT32"),
        (np.int64, "INT64"),
        (np.uint8, "UINT8"),
        (np.uint16, "UINT16"),
        (np.uint32, "UINT32"),
        (np.uint64, "UINT64"),
        (np.bool_, "BOOL"),
    )
}


def to_bytes(graph: FlatGraph, notes: dict[str, Any]) -> bytes:
    """The file; `notes` become metadata beside the version of relayout."""
    stored = sum(tensor.data.nbytes for tensor in _tensors(graph) if tensor.data is not None)
    if stored >= LARGEST_FILE:
        raise RelayoutError(f"its constants take {stored} bytes, more than a .tflite file can hold")
    builder = flatbuffers.Builder(1 << 20)
    builder.Finish(_model(graph, notes).Pack(builder), file_identifier=IDENTIFIER)
    return bytes(builder.Output())


def _model(graph: FlatGraph, notes: dict[str, Any]) -> Any:
    tensors = {tensor: index for index, tensor in enumerate(_tensors(graph))}
    model = schema.ModelT()
    model.version = SCHEMA_VERSION
    model.description = f"relayout {__version__}"
    model.buffers = [schema.BufferT()]
    codes: dict[tuple[str, int], int] = {}
    subgraph = schema.SubGraphT()
    subgraph.name = "main"
    subgraph.tensors = [_tensor(tensor, model.buffers) for tensor in tensors]
    subgraph.inputs = [tensors[tensor] for tensor in graph.inputs]
    subgraph.outputs = [tensors[tensor] for tensor in graph.outputs]
    subgraph.operators = [_operator(operator, tensors, codes) for operator in graph.operators]
    model.subgraphs = [subgraph]
    model.operatorCodes = [_code(*key) for key in codes]
    model.signatureDefs = [_signature(graph, tensors)]
    model.metadata = [_metadata({"version": __version__, **notes}, model.buffers)]
    return model


def _tensors(graph: FlatGraph) -> Iterable[FlatTensor]:
    """All tensors, those of the interface first and then as they are met."""
    met = dict.fromkeys((*graph.inputs, *graph.outputs))
    for operator in graph.operators:
        met.update(dict.fromkeys(t for t in operator.inputs if t is not None))
        met.update(dict.fromkeys(operator.outputs))
    return met


def _tensor(tensor: FlatTensor, buffers: list[Any]) -> Any:
    table = schema.TensorT()
    table.name = tensor.name
    table.shape = np.asarray(tensor.shape, np.int32)
    if tensor.dtype not in TYPES:
        raise RelayoutError(f"LiteRT has no tensors of {tensor.dtype}")
    table.type = TYPES[tensor.dtype]
    table.hasRank = True
    table.buffer = 0
    if tensor.data is not None:
        table.buffer = len(buffers)
        buffers.append(_buffer(np.ascontiguousarray(tensor.data, tensor.dtype)))
    if tensor.steps is not None and tensor.dtype.kind in "iu":
        table.quantization = _quantisation(tensor.steps)
    if tensor.open_axes:
        lengths = [-1 if axis in tensor.open_axes else n for axis, n in enumerate(tensor.shape)]
        table.shapeSignature = np.asarray(lengths, np.int32)
    return table


def _buffer(data: Any) -> Any:
    buffer = schema.BufferT()
    buffer.data = np.frombuffer(data.tobytes(), np.uint8)
    return buffer


def _quantisation(steps: Quantisation) -> Any:
    table = schema.QuantizationParametersT()
    table.scale = np.asarray(steps.scales, np.float32)
    table.zeroPoint = np.asarray(steps.zero_points, np.int64)
    table.quantizedDimension = steps.axis
    return table


def _operator(
    operator: FlatOperator, tensors: dict[FlatTensor, int], codes: dict[tuple[str, int], int]
) -> Any:
    table = schema.OperatorT()
    key = operator.builtin, version_of(operator)
    table.opcodeIndex = codes.setdefault(key, len(codes))
    table.inputs = [NOT_GIVEN if t is None else tensors[t] for t in operator.inputs]
    table.outputs = [tensors[tensor] for tensor in operator.outputs]
    name = OPTIONS.get(operator.builtin)
    if name is not None:
        options = getattr(schema, f"{name}OptionsT")()
        for field, value in operator.options.items():
            setattr(options, field, value)
        table.builtinOptions = options
        table.builtinOptionsType = getattr(schema.BuiltinOptions, f"{name}Options")
    return table


def _code(builtin: str, version: int) -> Any:
    table = schema.OperatorCodeT()
    number = getattr(schema.BuiltinOperator, builtin)
    table.builtinCode = number
    table.deprecatedBuiltinCode = min(
        number, schema.BuiltinOperator.PLACEHOLDER_FOR_GREATER_OP_CODES
    )
    table.version = version
    return table


def _signature(graph: FlatGraph, tensors: dict[FlatTensor, int]) -> Any:
    table = schema.SignatureDefT()
    table.signatureKey = SIGNATURE
    table.subgraphIndex = 0
    table.inputs = [_named(tensor, tensors) for tensor in graph.inputs]
    table.outputs = [_named(tensor, tensors) for tensor in graph.outputs]
    return table


def _named(tensor: FlatTensor, tensors: dict[FlatTensor, int]) -> Any:
    table = schema.TensorMapT()
    table.name = tensor.name
    table.tensorIndex = tensors[tensor]
    return table


def _metadata(notes: dict[str, Any], buffers: list[Any]) -> Any:
    table = schema.MetadataT()
    table.name = METADATA
    table.buffer = len(buffers)
    text = json.dumps(notes, sort_keys=True).encode()
    buffers.append(_buffer(np.frombuffer(text, np.uint8)))
    return table
