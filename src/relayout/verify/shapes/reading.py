"""Reads shapes off a graph, its bodies and the functions it calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import onnx

from relayout.verify.proof.lengths import Length, symbol
from relayout.verify.shapes import contrib, elementwise, made, movement, products, sampled, windows
from relayout.verify.shapes.symbolic import MOST_NUMBERS, WHOLE, OpenShape, Shapes, integers

if TYPE_CHECKING:
    from relayout.verify.interface import Port

Nodes = Sequence[onnx.NodeProto]
STANDARD = ("", "ai.onnx")
Rule = Callable[[Shapes, onnx.NodeProto], None]
RULES: Mapping[str, Rule] = {
    **elementwise.RULES,
    **made.RULES,
    **movement.RULES,
    **products.RULES,
    **sampled.RULES,
    **windows.RULES,
}


def shapes_of(model: onnx.ModelProto, ports: Sequence[Port]) -> Shapes:
    """What follows from a model whose inputs are as described."""
    found = Shapes()
    reader = _Reader({(made.domain, made.name): made for made in model.functions})
    for port in ports:
        if port.kind == "tensor" and port.dims is not None:
            found.dims[port.name] = [_length(dim) for dim in port.dims]
            _open_numbers(found, port)
    reader.graph(found, model.graph)
    return found


def _open_numbers(found: Shapes, port: Port) -> None:
    """Whole numbers that are fed may be lengths, which are open ones."""
    if port.element not in WHOLE or port.dims is None or len(port.dims) > 1:
        return
    count = port.dims[0] if port.dims else 1
    if isinstance(count, int) and count <= MOST_NUMBERS:
        found.fed[port.name] = [f"{port.name}{{{i}}}" for i in range(count)]
        found.numbers[port.name] = [symbol(name) for name in found.fed[port.name]]


def _length(dim: int | str) -> Length:
    return dim if isinstance(dim, int) else symbol(dim)


@dataclass(frozen=True)
class _Reader:
    functions: Mapping[tuple[str, str], onnx.FunctionProto]

    @property
    def _flow(self) -> Mapping[str, Rule]:
        return {"If": self._branches, "Loop": self._rounds, "Scan": self._slices}

    def graph(self, found: Shapes, graph: onnx.GraphProto) -> None:
        for tensor in graph.initializer:
            found.add_constant(tensor.name, tensor)
        self._nodes(found, graph.node)

    def _nodes(self, found: Shapes, nodes: Nodes) -> None:
        for node in nodes:
            if any(one.ref_attr_name for one in node.attribute):
                continue
            called = self.functions.get((node.domain, node.op_type))
            if called is not None:
                self._call(found, node, called)
                continue
            rule = self._rule_of(node)
            if rule is not None:
                _apply(rule, found, node)

    def _rule_of(self, node: onnx.NodeProto) -> Rule | None:
        if node.domain == contrib.DOMAIN:
            return contrib.RULES.get(node.op_type)
        if node.domain in STANDARD:
            return RULES.get(node.op_type) or self._flow.get(node.op_type)
        return None

    def _call(self, found: Shapes, node: onnx.NodeProto, called: onnx.FunctionProto) -> None:
        body = Shapes(equations=found.equations, inner=found.inner)
        _hand_over(found, node.input, body, called.input)
        self._nodes(body, called.node)
        _hand_over(body, called.output, found, node.output)

    def _branches(self, found: Shapes, node: onnx.NodeProto) -> None:
        """Both may be taken; their results are alike."""
        for one in node.attribute:
            body = found.inside()
            self.graph(body, one.g)
            _hand_over(body, _results(one.g), found, node.output)

    def _rounds(self, found: Shapes, node: onnx.NodeProto) -> None:
        """What a round begins with is taken to have one shape in all rounds."""
        body, graph = found.inside(), _body(node)
        states = node.input[2:]
        _hand_over(found, node.input, body, [port.name for port in graph.input])
        for port in graph.input[:2]:
            body.numbers.pop(port.name, None)
        self.graph(body, graph)
        _hand_over(found, states, found, node.output)
        count, inner = found.numbers_of(node, 0), _results(graph)[1 + len(states) :]
        rounds = count[0] if count else None
        for name, one in zip(node.output[len(states) :], inner, strict=True):
            _stack(found, name, body.dims.get(one), rounds)

    def _slices(self, found: Shapes, node: onnx.NodeProto) -> None:
        """Axes that are scanned are equally long; a round sees the others."""
        body, graph = found.inside(), _body(node)
        scanned = next(one.i for one in node.attribute if one.name == "num_scan_inputs")
        states, whole = node.input[:-scanned], node.input[-scanned:]
        names = [port.name for port in graph.input]
        _hand_over(found, states, body, names)
        axes = integers(node, "scan_input_axes") or [0] * scanned
        rounds: list[Length | None] = []
        for name, inner, axis in zip(whole, names[len(states) :], axes, strict=True):
            dims = list(found.dims.get(name, ()))
            if dims:
                rounds.append(dims.pop(axis))
                body.dims[inner] = dims
        for count in rounds[1:]:
            found.equal(rounds[0], count)
        _as_declared(body, graph.input)
        self.graph(body, graph)
        _as_declared(body, graph.output)
        _hand_over(found, states, found, node.output)
        stacked = node.output[len(states) :]
        places = integers(node, "scan_output_axes") or [0] * len(stacked)
        for name, one, axis in zip(stacked, _results(graph)[len(states) :], places, strict=True):
            _stack(found, name, body.dims.get(one), next(iter(rounds), None), axis)


def _apply(rule: Rule, found: Shapes, node: onnx.NodeProto) -> None:
    try:
        rule(found, node)
    except (IndexError, ValueError, ZeroDivisionError):
        # Operands that do not fit the operator: whatever a runtime makes of it, nothing is known of
        # its results.
        for name in node.output:
            found.dims.pop(name, None)
            found.numbers.pop(name, None)


def _as_declared(found: Shapes, ports: Sequence[onnx.ValueInfoProto]) -> None:
    """States the lengths that slices are declared to have, which a runtime demands of a Scan."""
    for port in ports:
        dims, declared = found.dims.get(port.name), port.type.tensor_type.shape.dim
        if dims is not None and len(dims) == len(declared):
            for dim, one in zip(dims, declared, strict=True):
                found.equal(dim, one.dim_value or None)


def _stack(
    found: Shapes, name: str, dims: OpenShape | None, rounds: Length | None, axis: int = 0
) -> None:
    """What each round gives, one after the other along an axis."""
    if name and dims is not None:
        place = axis % (len(dims) + 1)
        found.dims[name] = [*dims[:place], rounds, *dims[place:]]


def _results(graph: onnx.GraphProto) -> list[str]:
    return [port.name for port in graph.output]


def _body(node: onnx.NodeProto) -> onnx.GraphProto:
    graph: onnx.GraphProto = next(one.g for one in node.attribute if one.name == "body")
    return graph


def _hand_over(source: Shapes, names: Sequence[str], target: Shapes, others: Sequence[str]) -> None:
    """What is known of values is known of those that they become."""
    for name, other in zip(names, others, strict=False):
        if name in source.dims:
            target.dims[other] = source.dims[name]
        if name in source.numbers:
            target.numbers[other] = source.numbers[name]
