"""From the graph of a model to the values of its outputs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import onnx
from onnx import numpy_helper
from onnx.external_data_helper import load_external_data_for_tensor, uses_external_data

from relayout.verify.proof.call import Call, frozen
from relayout.verify.proof.constants import Numbers, constant_of, numbers_of
from relayout.verify.proof.folding import folded
from relayout.verify.proof.lengths import Length, symbol
from relayout.verify.proof.ranks import rank_of
from relayout.verify.proof.registry import RULES
from relayout.verify.proof.table import NotKnownError, Table, Value
from relayout.verify.proof.views import exact

STANDARD = ("", "ai.onnx")
# Two nodes that draw numbers do not draw the same; in both models one is known by its name.
DRAWING = {"Bernoulli", "Dropout", "Multinomial", "RandomNormal", "RandomNormalLike"}
DRAWING |= {"RandomUniform", "RandomUniformLike"}
FunctionKey = tuple[str, str, str]


@dataclass
class Program:
    """A model being read: its functions, its versions, and what no rule was known for."""

    table: Table
    functions: Mapping[FunctionKey, onnx.FunctionProto]
    folder: Path
    numbers: dict[str, Numbers] = field(default_factory=dict)
    """The model's own constants by name, which readings of it share."""
    not_known: dict[str, str] = field(default_factory=dict)
    """By the name of a node's first result, why nothing is known of it."""


@dataclass
class Scope:
    """Values by name, with those of the graphs around."""

    program: Program
    versions: Mapping[str, int]
    values: dict[str, Value] = field(default_factory=dict)
    outer: Scope | None = None
    depth: int = 0
    """How many bodies and functions are around."""

    def get(self, name: str) -> Value:
        scope: Scope | None = self
        while scope is not None:
            if name in scope.values:
                return scope.values[name]
            scope = scope.outer
        raise NotKnownError(f"no value is called '{name}'")

    def body(self) -> Scope:
        return Scope(self.program, self.versions, outer=self, depth=self.depth + 1)

    def run(self, graph: onnx.GraphProto, given: Mapping[str, Value] | None = None) -> list[Value]:
        """The outputs, where `given` values take the place of initialisers."""
        for tensor in graph.initializer:
            self.values[tensor.name] = self._initializer(tensor)
        for sparse in graph.sparse_initializer:
            key = ("sparse", sparse.SerializeToString(deterministic=True))
            self.values[sparse.values.name] = self.program.table.opaque(key, list(sparse.dims))
        self.values |= given or {}
        return self.run_nodes(graph.node, [output.name for output in graph.output])

    def run_nodes(self, nodes: Sequence[onnx.NodeProto], outputs: Sequence[str]) -> list[Value]:
        for node in sorted_nodes(nodes):
            self._run_node(node)
        return [self.get(name) for name in outputs]

    def _run_node(self, node: onnx.NodeProto) -> None:
        operands = tuple(self.get(name) if name else None for name in node.input)
        results = self._function(node, operands)
        if results is None:
            results = self._results(node, operands)
        for name, value in zip(node.output, results, strict=False):
            if name:
                self.values[name] = value

    def _results(self, node: onnx.NodeProto, operands: tuple[Value | None, ...]) -> list[Value]:
        domain = "" if node.domain in STANDARD else node.domain
        call = Call(self.program.table, node, operands, self.versions.get(domain, 1), self)
        rule = RULES.get((domain, node.op_type))
        try:
            known = folded(call)
            if known is not None:
                return known
            if rule is None:
                raise NotKnownError(f"no rule for {node.op_type}")
            return rule(call)
        except NotKnownError as reason:
            self.program.not_known[node.output[0]] = str(reason)
            return self._opaque(call)

    def _opaque(self, call: Call) -> list[Value]:
        """Results of which only the origin is known."""
        inputs = tuple(exact(call.table, value) for value in call.operands)
        try:
            key = call.key()
            if call.node.op_type in DRAWING:
                key += (call.table.unlike_any() if self.depth else call.node.output[0],)
        except NotKnownError:
            key = (call.node.op_type, call.table.unlike_any())
        rank = rank_of(call)
        results = []
        for number in range(len(call.node.output)):
            origin = ("opaque", key, inputs, number)
            name = f"#{call.table.term(*origin)}"
            shape = None if rank is None else [symbol(f"{name}[{axis}]") for axis in range(rank)]
            results.append(call.table.opaque(origin, shape))
        return results

    def _function(
        self, node: onnx.NodeProto, operands: tuple[Value | None, ...]
    ) -> list[Value] | None:
        overload = getattr(node, "overload", "")
        function = self.program.functions.get((node.domain, node.op_type, overload))
        if function is None:
            return None
        given = {attribute.name: attribute for attribute in node.attribute}
        defaults = {attribute.name: attribute for attribute in function.attribute_proto}
        bound = [_bound(inner, {**defaults, **given}) for inner in function.node]
        versions = {_domain(o.domain): o.version for o in function.opset_import}
        scope = Scope(self.program, versions, depth=self.depth + 1)
        for name, value in zip(function.input, operands, strict=False):
            if value is not None:
                scope.values[name] = value
        return scope.run_nodes(bound, list(function.output))

    def _initializer(self, tensor: onnx.TensorProto) -> Value:
        if self.outer is not None or self.depth:
            return constant_of(self.program.table, self._numbers(tensor))
        known = self.program.numbers
        if tensor.name not in known:
            known[tensor.name] = self._numbers(tensor)
        return constant_of(self.program.table, known[tensor.name])

    def _numbers(self, tensor: onnx.TensorProto) -> Numbers:
        if uses_external_data(tensor):
            loaded = onnx.TensorProto()
            loaded.CopyFrom(tensor)
            load_external_data_for_tensor(loaded, str(self.program.folder))
            tensor = loaded
        return numbers_of(numpy_helper.to_array(tensor))


def sorted_nodes(nodes: Sequence[onnx.NodeProto]) -> list[onnx.NodeProto]:
    """The nodes so that each follows those whose results it, or a body of it, reads."""
    makers = {name: node for node in nodes for name in node.output if name}
    result: list[onnx.NodeProto] = []
    done: set[int] = set()
    for first in nodes:
        stack = [first]
        while stack:
            node = stack[-1]
            wanted = [makers[name] for name in _reads(node) if name in makers]
            ahead = [maker for maker in wanted if id(maker) not in done and maker is not node]
            if id(node) in done or not ahead:
                stack.pop()
                if id(node) not in done:
                    done.add(id(node))
                    result.append(node)
                continue
            if len(stack) > len(nodes):
                raise NotKnownError("nodes in a circle")
            stack.append(ahead[0])
    return result


def _reads(node: onnx.NodeProto) -> Iterator[str]:
    yield from node.input
    for attribute in node.attribute:
        for graph in [attribute.g] if attribute.HasField("g") else attribute.graphs:
            for inner in graph.node:
                yield from _reads(inner)
            yield from (output.name for output in graph.output)


def input_value(table: Table, port: onnx.ValueInfoProto, place: str) -> Value:
    """A tensor that the caller gives."""
    kind = port.type.WhichOneof("value")
    if kind != "tensor_type":
        return table.opaque((place, frozen(port.type)), None)
    tensor = port.type.tensor_type
    key = (place, tensor.elem_type)
    if not tensor.HasField("shape"):
        return table.opaque(key, None)
    shape = [_length(dim, place, i) for i, dim in enumerate(tensor.shape.dim)]
    return table.opaque(key, shape)


def _length(dim: onnx.TensorShapeProto.Dimension, place: str, axis: int) -> Length:
    if dim.HasField("dim_value") and dim.dim_value >= 0:
        return int(dim.dim_value)
    named = dim.dim_param not in ("", "?")
    return symbol(dim.dim_param if named else f"{place}[{axis}]")


def _bound(node: onnx.NodeProto, attributes: Mapping[str, onnx.AttributeProto]) -> onnx.NodeProto:
    """The node of a function with the attributes that its call gives."""
    bound = onnx.NodeProto()
    bound.CopyFrom(node)
    del bound.attribute[:]
    for attribute in node.attribute:
        if not attribute.ref_attr_name:
            bound.attribute.add().CopyFrom(attribute)
        elif attribute.ref_attr_name in attributes:
            made = bound.attribute.add()
            made.CopyFrom(attributes[attribute.ref_attr_name])
            made.name = attribute.name
    for attribute in bound.attribute:
        for body in [attribute.g] if attribute.HasField("g") else attribute.graphs:
            inner = [_bound(one, attributes) for one in body.node]
            del body.node[:]
            body.node.extend(inner)
    return bound


def _domain(domain: str) -> str:
    return "" if domain in STANDARD else domain
