"""The shapes of what loops carry from one round to the next, by induction.

What a body declares about its operands is a claim. A carried value has the shape of its initial
value, as far as a body that is given this shape gives it back. So that is assumed, inferred with,
and each length is given up that does not come back, until what is left holds.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import onnx

from relayout.graph.messages.walk import subgraphs_of
from relayout.graph.shapes.claims import without_lengths

_CarriedLengths: TypeAlias = tuple[int | str | None, ...]
_Types: TypeAlias = ChainMap[str, onnx.TypeProto]
_Infer: TypeAlias = Callable[[], onnx.ModelProto]


@dataclass(frozen=True, slots=True)
class _CarriedShape:
    """One value that a loop carries: as it begins, in the body, and as a round gives it."""

    depth: int
    """How many bodies the value is in."""
    initial: onnx.TypeProto
    operand: onnx.ValueInfoProto
    result: onnx.TypeProto


def infer_carried(
    model: onnx.ModelProto, result: onnx.ModelProto, infer: _Infer
) -> onnx.ModelProto:
    """Inference with the shapes that loops carry; `infer` infers `model` as it is now.

    `result` is what is inferred for `model` before. What inner loops begin with is known only when
    something is assumed of the outer ones.
    """
    symbols = {d.dim_param for v in model.graph.input for d in v.type.tensor_type.shape.dim}
    places = list(_carried(model.graph, ChainMap()))
    claims = [without_lengths(place.operand.type) for place in places]
    assumed: list[_CarriedLengths | None] = [None] * len(places)

    def infer_assuming(
        lengths: list[_CarriedLengths | None],
    ) -> tuple[onnx.ModelProto, list[_CarriedShape]]:
        for place, claim, known in zip(places, claims, lengths, strict=True):
            _assume(place.operand, claim, known)
        found = infer()
        return found, list(_carried(found.graph, ChainMap()))

    found = list(_carried(result.graph, ChainMap()))
    for depth in sorted({place.depth for place in places}):
        assumed = [
            _lengths(place.initial, symbols) if place.depth == depth else lengths
            for place, lengths in zip(found, assumed, strict=True)
        ]
        result, found = infer_assuming(assumed)
    while True:
        held = [
            _common(lengths, _lengths(place.initial, symbols), _lengths(place.result, symbols))
            for lengths, place in zip(assumed, found, strict=True)
        ]
        if held == assumed:
            return result
        assumed = held
        result, found = infer_assuming(assumed)


def _carried(graph: onnx.GraphProto, outer: _Types) -> Iterator[_CarriedShape]:
    """Every carried value of a graph and of those inside it, in the order of the nodes."""
    holders = [(node, bodies) for node in graph.node if (bodies := subgraphs_of(node))]
    if not holders:
        return
    types = outer.new_child({value.name: value.type for value in _typed(graph)})
    for node, bodies in holders:
        for body in bodies:
            for initial, operand, result in _states(node, body):
                begins = types.get(initial, onnx.TypeProto())
                yield _CarriedShape(len(types.maps), begins, operand, result.type)
            yield from _carried(body, types)


def _typed(graph: onnx.GraphProto) -> Iterator[onnx.ValueInfoProto]:
    for tensor in graph.initializer:
        yield onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims)
    yield from graph.input
    yield from graph.value_info
    yield from graph.output


def _states(
    node: onnx.NodeProto, body: onnx.GraphProto
) -> Iterator[tuple[str, onnx.ValueInfoProto, onnx.ValueInfoProto]]:
    """For each carried value its initial value, and its place in and out of the body."""
    if node.domain not in {"", "ai.onnx"}:
        return
    if node.op_type == "Loop":
        yield from zip(node.input[2:], body.input[2:], body.output[1:], strict=False)
    elif node.op_type == "Scan":
        scanned = sum(a.i for a in node.attribute if a.name == "num_scan_inputs")
        states = len(node.input) - scanned
        yield from zip(node.input[:states], body.input, body.output, strict=False)


def _lengths(declared: onnx.TypeProto, symbols: set[str]) -> _CarriedLengths | None:
    """Lengths that mean the same in every run of inference: numbers, and symbols of inputs."""
    if not declared.HasField("tensor_type") or not declared.tensor_type.HasField("shape"):
        return None
    return tuple(
        dim.dim_value
        if dim.HasField("dim_value")
        else (dim.dim_param if dim.dim_param in symbols else None) or None
        for dim in declared.tensor_type.shape.dim
    )


def _common(
    first: _CarriedLengths | None, *others: _CarriedLengths | None
) -> _CarriedLengths | None:
    if first is None or any(other is None or len(other) != len(first) for other in others):
        return None
    rows = zip(first, *(other for other in others if other is not None), strict=True)
    return tuple(row[0] if len(set(row)) == 1 else None for row in rows)


def _assume(
    operand: onnx.ValueInfoProto, claim: onnx.TypeProto, lengths: _CarriedLengths | None
) -> None:
    """Let a body's operand have these lengths; its claim, where nothing is known of it."""
    operand.type.CopyFrom(claim)
    if lengths is not None and claim.HasField("tensor_type"):
        element = claim.tensor_type.elem_type
        operand.type.CopyFrom(onnx.helper.make_tensor_type_proto(element, lengths))
