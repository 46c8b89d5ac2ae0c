"""What must hold of a model between passes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

import onnx_ir as ir

from relayout.graph.read import Shape, is_op, perm_of, shape_of
from relayout.graph.region import Region, regions_of, subgraphs_of


class InvariantError(RuntimeError):
    """A pass left the model in a state it must never be in."""


@dataclass(frozen=True, slots=True)
class SignaturePort:
    """One input or output of a graph, as the user of the model sees it."""

    name: str | None
    dtype: ir.DataType | None
    shape: Shape | None


@dataclass(frozen=True, slots=True)
class Signature:
    """The names, order, types and shapes of what goes in and out of a model."""

    inputs: tuple[SignaturePort, ...]
    outputs: tuple[SignaturePort, ...]

    @classmethod
    def of(cls, model: ir.Model) -> Signature:
        return cls(_ports(model.graph.inputs), _ports(model.graph.outputs))


def check(model: ir.Model, signature: Signature) -> None:
    """Raise if names clash, an operand has no source, or the interface has changed."""
    _check_signature(Signature.of(model), signature)
    _check_graph(model.graph, [])
    for function in model.functions.values():
        _check_graph(function.graph, [])
    for region in regions_of(model):
        _check_transposes(region)


def _check_signature(now: Signature, before: Signature) -> None:
    for ports, wanted, kind in (
        (now.inputs, before.inputs, "input"),
        (now.outputs, before.outputs, "output"),
    ):
        if [port.name for port in ports] != [port.name for port in wanted]:
            raise InvariantError(f"the {kind}s of the model have changed")
        for port, original in zip(ports, wanted, strict=True):
            _check_port(port, original, kind)


def _check_port(port: SignaturePort, original: SignaturePort, kind: str) -> None:
    if original.dtype not in {None, port.dtype}:
        raise InvariantError(f"{kind} {port.name!r} has another element type")
    if original.shape is None or port.shape is None:
        return
    if len(original.shape) != len(port.shape):
        raise InvariantError(f"{kind} {port.name!r} has another rank")
    for was, now in zip(original.shape, port.shape, strict=True):
        if isinstance(was, int) and isinstance(now, int) and was != now:
            raise InvariantError(f"{kind} {port.name!r} has another shape")


VisibleNames: TypeAlias = list[set[str]]
"""The names that can be seen, one set per graph, the innermost graph last."""


def _check_graph(graph: ir.Graph, outer: VisibleNames) -> None:
    """Every operand is defined before it is read, and every name once.

    Recursion is safe: the file format does not allow more than some thirty graphs in each other.
    """
    scopes = [*outer, set[str]()]
    inputs = {value.name for value in graph.inputs}
    _define(graph.inputs, scopes)
    _define((v for name, v in graph.initializers.items() if name not in inputs), scopes)
    for node in graph:
        _check_operands(node, scopes)
        for body in subgraphs_of(node):
            _check_graph(body, scopes)
        _define(node.outputs, scopes)
    for value in graph.outputs:
        if not _is_opaque(value) and not _is_defined(value, scopes):
            raise InvariantError(f"nothing computes graph output {value.name!r}")


def _define(values: Iterable[ir.Value], scopes: VisibleNames) -> None:
    for value in values:
        if not value.name:
            continue
        if _is_defined(value, scopes):
            raise InvariantError(f"the name {value.name!r} is defined twice")
        scopes[-1].add(value.name)


def _is_defined(value: ir.Value, scopes: VisibleNames) -> bool:
    return any(value.name in names for names in scopes)


def _check_operands(node: ir.Node, scopes: VisibleNames) -> None:
    for value in node.inputs:
        if value is None or _is_opaque(value):
            continue
        if not _is_defined(value, scopes):
            raise InvariantError(f"node {node.name!r} reads {value.name!r} before it is computed")


def _is_opaque(value: ir.Value) -> bool:
    """Whether a value comes from a part of the file that the graph cannot hold (sparse tensors)."""
    return value.producer() is None and not value.is_graph_input() and not value.is_initializer()


def _check_transposes(region: Region) -> None:
    """The shape of a Transpose's result is the permuted shape of its operand."""
    for node in region.graph:
        if not is_op(node, "Transpose"):
            continue
        order, given, result = perm_of(node), shape_of(node.inputs[0]), shape_of(node.outputs[0])
        if order is None or given is None or result is None:
            continue
        wanted = order.reorder(given)
        for length, other in zip(wanted, result, strict=True):
            if isinstance(length, int) and isinstance(other, int) and length != other:
                raise InvariantError(
                    f"the shape of {node.outputs[0].name!r} is not the permuted one"
                )


def _ports(values: Iterable[ir.Value]) -> tuple[SignaturePort, ...]:
    return tuple(SignaturePort(value.name, value.dtype, shape_of(value)) for value in values)
