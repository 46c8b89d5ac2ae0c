"""Slices of opset 10: onnx's inference takes an open length that they cut for the whole one."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

import onnx
from onnx import helper

from relayout.graph.messages.walk import nested_bodies

UNTRUE_AT, TRUE_SINCE = 10, 11
"""Both versions mean the same by the operands that are valid in the first."""

_STANDARD = frozenset(("", "ai.onnx"))
_DOMAIN = "relayout.slices"
_FIRST_WITH_FUNCTIONS = 8


def may_be_untrue(inferred: onnx.ModelProto) -> bool:
    """Whether a length that is open before a Slice of that version was taken for the one after."""
    if not any(map(_is_untrue, inferred.opset_import)):
        return False
    types = {value.name: value.type for graph in _graphs(inferred) for value in _typed(graph)}
    return any(
        _symbols(types.get(node.input[0])) & _symbols(types.get(node.output[0]))
        for node in _slices(inferred)
    )


def with_true_slices(model: onnx.ModelProto) -> onnx.ModelProto:
    """A model that calls a function of a newer opset for each Slice."""
    result = onnx.ModelProto()
    result.CopyFrom(model)
    functions = {
        name: _function(name, operands)
        for node in _slices(result)
        for name, operands in [_called(node)]
    }
    result.functions.extend(functions.values())
    result.opset_import.append(helper.make_opsetid(_DOMAIN, 1))
    result.ir_version = max(result.ir_version, _FIRST_WITH_FUNCTIONS)
    return result


def as_given(inferred: onnx.ModelProto, model: onnx.ModelProto) -> onnx.ModelProto:
    """What was inferred, with the nodes of the model that it was inferred for."""
    for graph, given in zip(_graphs(inferred), _graphs(model), strict=True):
        for node, original in zip(graph.node, given.node, strict=True):
            if node.domain == _DOMAIN:
                node.CopyFrom(original)
    functions = [each for each in inferred.functions if each.domain != _DOMAIN]
    del inferred.functions[:]
    inferred.functions.extend(functions)
    del inferred.opset_import[:]
    inferred.opset_import.extend(model.opset_import)
    inferred.ir_version = model.ir_version
    return inferred


def _is_untrue(opset: onnx.OperatorSetIdProto) -> bool:
    return opset.domain in _STANDARD and opset.version == UNTRUE_AT


def _typed(graph: onnx.GraphProto) -> Iterator[onnx.ValueInfoProto]:
    yield from chain(graph.input, graph.value_info, graph.output)


def _symbols(declared: onnx.TypeProto | None) -> set[str]:
    dims = () if declared is None else declared.tensor_type.shape.dim
    return {dim.dim_param for dim in dims if dim.dim_param}


def _slices(model: onnx.ModelProto) -> Iterator[onnx.NodeProto]:
    for graph in _graphs(model):
        yield from (
            node for node in graph.node if node.op_type == "Slice" and node.domain in _STANDARD
        )


def _called(node: onnx.NodeProto) -> tuple[str, list[str]]:
    """Let a node call the function for the operands that it has."""
    operands = [name and f"x{index}" for index, name in enumerate(node.input)]
    node.op_type = "_".join(("Slice", *filter(None, operands)))
    node.domain = _DOMAIN
    given = [name for name in node.input if name]
    del node.input[:]
    node.input.extend(given)
    return node.op_type, operands


def _function(name: str, operands: list[str]) -> onnx.FunctionProto:
    body = helper.make_node("Slice", operands, ["y"])
    opset = helper.make_opsetid("", TRUE_SINCE)
    return helper.make_function(_DOMAIN, name, [*filter(None, operands)], ["y"], [body], [opset])


def _graphs(model: onnx.ModelProto) -> Iterator[onnx.GraphProto]:
    for body in nested_bodies(model.graph):
        if isinstance(body, onnx.GraphProto):
            yield body
