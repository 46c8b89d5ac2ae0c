"""Shapes that onnx's inference leaves open though the rank follows from what is known."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import TypeAlias

import onnx
from onnx import numpy_helper

from relayout.layout.blocks import is_invented

LONGEST_TARGET = 64
"""A vector with more entries than this is not taken for a shape."""

TargetEntries: TypeAlias = list[int | None]
"""A target shape, entry by entry; None where it is known only at run time."""

_Dims: TypeAlias = list[int | str | None]


def derived_shapes(graph: onnx.GraphProto) -> list[onnx.ValueInfoProto]:
    """What is known of the results of some operators, at least their rank.

    `graph` is the outcome of onnx's inference; only results it leaves open are derived.
    """
    types = {value.name: value.type for value in chain(graph.input, graph.value_info, graph.output)}
    open_nodes = [node for node in graph.node if _is_open(node, types)]
    if not open_nodes:
        return []
    constants = dict(_constants(graph))
    producers = {name: node for node in graph.node for name in node.output}
    found = []
    for node in open_nodes:
        if node.op_type not in _TARGET_OPERAND or _has_rank(types, node.output[0]):
            continue
        entries = _entries(node.input[_TARGET_OPERAND[node.op_type]], types, constants, producers)
        element = _element_type(node, types, constants)
        if entries is not None and element:
            dims = [entry if entry is not None and entry > 0 else None for entry in entries]
            found.append(onnx.helper.make_tensor_value_info(node.output[0], element, dims))
    return [
        *found,
        *_like_operands(open_nodes, types),
        *_transposed(open_nodes, types, constants),
        *_last_values(open_nodes, types, constants),
    ]


def _is_open(node: onnx.NodeProto, types: Mapping[str, onnx.TypeProto]) -> bool:
    """Whether some result of a node has no rank yet, and may get one here."""
    if node.op_type not in _DERIVED or node.domain:
        return False
    return not all(_has_rank(types, name) for name in node.output)


def _like_operands(
    nodes: Sequence[onnx.NodeProto], types: Mapping[str, onnx.TypeProto]
) -> Iterator[onnx.ValueInfoProto]:
    """The results of operators that keep the shape of their operand, which onnx does not infer."""
    for node in nodes:
        if node.op_type not in _SHAPE_KEEPING or _has_rank(types, node.output[0]):
            continue
        if _has_rank(types, node.input[0]):
            yield onnx.helper.make_value_info(node.output[0], types[node.input[0]])


def _transposed(
    nodes: Sequence[onnx.NodeProto],
    types: Mapping[str, onnx.TypeProto],
    constants: Mapping[str, onnx.TensorProto],
) -> Iterator[onnx.ValueInfoProto]:
    """A perm states the rank of what is transposed."""
    for node in nodes:
        if node.op_type != "Transpose":
            continue
        perms = [attribute.ints for attribute in node.attribute if attribute.name == "perm"]
        if not perms:
            continue
        element = _element_type(node, types, constants)
        if element and not _has_rank(types, node.output[0]):
            yield onnx.helper.make_tensor_value_info(
                node.output[0], element, [None] * len(perms[0])
            )


def _last_values(
    nodes: Sequence[onnx.NodeProto],
    types: Mapping[str, onnx.TypeProto],
    constants: Mapping[str, onnx.TensorProto],
) -> Iterator[onnx.ValueInfoProto]:
    """The last value that a Loop carries is its initial value or what its body gives."""
    for node in nodes:
        if node.op_type != "Loop":
            continue
        bodies = [attribute.g for attribute in node.attribute if attribute.name == "body"]
        for body in bodies:
            for name, first, given in zip(
                node.output, node.input[2:], body.output[1:], strict=False
            ):
                dims = _common_dims(_dims(first, types, constants), _dims_of(given.type))
                if name and dims is not None and not _has_rank(types, name):
                    element = given.type.tensor_type.elem_type
                    yield onnx.helper.make_tensor_value_info(name, element, dims)


def _common_dims(one: _Dims | None, other: _Dims | None) -> _Dims | None:
    if one is None or other is None or len(one) != len(other):
        return None
    return [a if a == b else None for a, b in zip(one, other, strict=True)]


def _dims(
    name: str, types: Mapping[str, onnx.TypeProto], constants: Mapping[str, onnx.TensorProto]
) -> _Dims | None:
    return list(constants[name].dims) if name in constants else _dims_of(types.get(name))


def _dims_of(declared: onnx.TypeProto | None) -> _Dims | None:
    """Numbers, and symbols of the model; those that inference makes up mean nothing elsewhere."""
    if declared is None or not declared.tensor_type.HasField("shape"):
        return None
    return [
        dim.dim_value
        if dim.HasField("dim_value")
        else None
        if is_invented(dim.dim_param or None)
        else dim.dim_param
        for dim in declared.tensor_type.shape.dim
    ]


_SHAPE_KEEPING = {"GroupNormalization"}
_TARGET_OPERAND = {"Reshape": 1, "ConstantOfShape": 0}
_DERIVED = {*_TARGET_OPERAND, *_SHAPE_KEEPING, "Transpose", "Loop"}


def _entries(
    name: str,
    types: Mapping[str, onnx.TypeProto],
    constants: Mapping[str, onnx.TensorProto],
    producers: Mapping[str, onnx.NodeProto],
) -> TargetEntries | None:
    """The entries of a vector; those of its parts where it is a concatenation."""
    if name in constants:
        return _constant_entries(constants[name])
    node = producers.get(name)
    if node is None or node.op_type != "Concat" or node.domain:
        return _unknown_entries(types.get(name))
    parts = [
        _constant_entries(constants[part])
        if part in constants
        else _unknown_entries(types.get(part))
        for part in node.input
    ]
    joined = [entry for part in parts if part is not None for entry in part]
    return None if None in parts or len(joined) > LONGEST_TARGET else joined


def _constant_entries(tensor: onnx.TensorProto) -> TargetEntries | None:
    """The entries of a constant vector, whose data may be left out if a caller may override it."""
    if len(tensor.dims) != 1 or tensor.dims[0] > LONGEST_TARGET:
        return None
    if not (tensor.raw_data or tensor.int64_data):
        return [None] * tensor.dims[0]
    return [int(entry) for entry in numpy_helper.to_array(tensor)]


def _unknown_entries(declared: onnx.TypeProto | None) -> TargetEntries | None:
    if declared is None or not declared.tensor_type.HasField("shape"):
        return None
    dims = declared.tensor_type.shape.dim
    if len(dims) != 1 or not 0 <= dims[0].dim_value <= LONGEST_TARGET:
        return None
    return [None] * dims[0].dim_value if dims[0].HasField("dim_value") else None


def _element_type(
    node: onnx.NodeProto,
    types: Mapping[str, onnx.TypeProto],
    constants: Mapping[str, onnx.TensorProto],
) -> int:
    if node.op_type == "ConstantOfShape":
        values = [attribute.t.data_type for attribute in node.attribute]
        return values[0] if values else onnx.TensorProto.FLOAT
    if node.input[0] in constants:
        return constants[node.input[0]].data_type
    declared = types.get(node.input[0])
    return 0 if declared is None else declared.tensor_type.elem_type


def _has_rank(types: Mapping[str, onnx.TypeProto], name: str) -> bool:
    return name in types and types[name].tensor_type.HasField("shape")


def _constants(graph: onnx.GraphProto) -> Iterator[tuple[str, onnx.TensorProto]]:
    for tensor in graph.initializer:
        yield tensor.name, tensor
    for node in graph.node:
        if node.op_type == "Constant" and not node.domain:
            for attribute in node.attribute:
                if attribute.name == "value":
                    yield node.output[0], attribute.t
