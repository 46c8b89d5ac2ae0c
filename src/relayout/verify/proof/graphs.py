"""From the graph of a model to the values of its outputs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import onnx
from onnx.external_data_helper import uses_external_data

from relayout.verify.proof.call import NodeCall, frozen
from relayout.verify.proof.constants import Numbers, constant_of, numbers_of
from relayout.verify.proof.draws import drawer, draws
from relayout.verify.proof.folding import folded
from relayout.verify.proof.lengths import OPAQUE, Length, symbol
from relayout.verify.proof.ranks import rank_of
from relayout.verify.proof.registry import RULES
from relayout.verify.proof.stored import DataFolder, StoredPlace
from relayout.verify.proof.table import Key, NotKnownError, TermTable, TermValue
from relayout.verify.proof.views import exact

STANDARD = ("", "ai.onnx")
# What rules raise for models that no checker would pass.
MALFORMED = (IndexError, ValueError, ZeroDivisionError)
FunctionKey = tuple[str, str, str]
BODIES = (onnx.AttributeProto.GRAPH, onnx.AttributeProto.GRAPHS)


@dataclass
class ModelReader:
    """A model being read: its functions, its versions, and what no rule was known for."""

    table: TermTable
    functions: Mapping[FunctionKey, onnx.FunctionProto]
    data: DataFolder
    shared: frozenset[StoredPlace] = frozenset()
    """Where constants lie that both models have, and that are not read."""
    numbers: dict[str, Numbers] = field(default_factory=dict)
    """The model's own constants by name, which readings of it share."""
    first: bool = True
    """Whether it is the model that is read again with what is found about its lengths."""
    draws: Counter[str] = field(default_factory=Counter)
    """How often numbers were drawn, by what the draw is called."""
    not_known: dict[str, str] = field(default_factory=dict)
    """By the name of a node's first result, why nothing is known of it."""
    met_unknown: int = 0
    """How often a node was met that nothing is known of."""
    not_followed: dict[str, None] = field(default_factory=dict)
    """The nodes that nothing is known of, and those whose bodies or functions hold them."""


@dataclass
class LocalValues:
    """Values by name, with those of the graphs around."""

    program: ModelReader
    versions: Mapping[str, int]
    values: dict[str, TermValue] = field(default_factory=dict)
    outer: LocalValues | None = None
    depth: int = 0
    """How many bodies and functions are around."""

    def get(self, name: str) -> TermValue:
        scope: LocalValues | None = self
        while scope is not None:
            if name in scope.values:
                return scope.values[name]
            scope = scope.outer
        raise NotKnownError(f"no value is called '{name}'")

    def body(self) -> LocalValues:
        return LocalValues(self.program, self.versions, outer=self, depth=self.depth + 1)

    def run(
        self, graph: onnx.GraphProto, given: Mapping[str, TermValue] | None = None
    ) -> list[TermValue]:
        """The outputs, where `given` values take the place of initialisers."""
        for tensor in graph.initializer:
            self.values[tensor.name] = self._initializer(tensor)
        for sparse in graph.sparse_initializer:
            key = ("sparse", sparse.SerializeToString(deterministic=True))
            self.values[sparse.values.name] = self.program.table.opaque(key, list(sparse.dims))
        self.values |= given or {}
        return self.run_nodes(graph.node, [output.name for output in graph.output])

    def run_nodes(self, nodes: Sequence[onnx.NodeProto], outputs: Sequence[str]) -> list[TermValue]:
        for node in sorted_nodes(nodes):
            self._run_node(node)
        return [self.get(name) for name in outputs]

    def _run_node(self, node: onnx.NodeProto) -> None:
        operands = tuple(self.get(name) if name else None for name in node.input)
        met_before = self.program.met_unknown
        results = self._function(node, operands)
        if results is None:
            results = self.results(node, operands)
        if self.program.met_unknown > met_before:
            self.program.not_followed[_name_of(node)] = None
        for name, value in zip(node.output, results, strict=False):
            if name:
                self.values[name] = value

    def results(
        self,
        node: onnx.NodeProto,
        operands: tuple[TermValue | None, ...],
        version: int | None = None,
    ) -> list[TermValue]:
        """What a node makes of its operands; `version` is that of the model unless given."""
        domain = "" if node.domain in STANDARD else node.domain
        version = version or self.versions.get(domain, 1)
        call = NodeCall(self.program.table, node, operands, version, self)
        key = self._computed_as(call, domain)
        if key is None:
            return self._by_rule(call, domain)
        computed, met_before = call.table.computed, self.program.met_unknown
        results = computed.get(key) or self._by_rule(call, domain)
        if self.program.met_unknown == met_before:
            computed[key] = results
        return results

    def _computed_as(self, call: NodeCall, domain: str) -> Key | None:
        """What a node that does the same to the same operands has too; None where that may not be.

        Nothing is remembered where steps are counted, and bodies read more than operands.
        """
        is_outermost = self.outer is None and not self.depth
        if not is_outermost or call.table.ledger is not None or draws(call.node):
            return None
        attributes = call.node.attribute
        if any(attribute.type in BODIES for attribute in attributes):
            return None
        given = frozenset(attribute.SerializeToString() for attribute in attributes)
        outputs = tuple(map(bool, call.node.output))
        return (domain, call.node.op_type, call.version, given, call.operands, outputs)

    def _by_rule(self, call: NodeCall, domain: str) -> list[TermValue]:
        """What the rule of an operator makes of a node; opaque results where there is none."""
        node = call.node
        rule = RULES.get((domain, node.op_type))
        try:
            known = folded(call)
            if known is not None:
                return known
            if rule is None:
                raise NotKnownError(f"no rule for {node.op_type}")
            results = rule(call)
            call.check_considered()
        except NotKnownError as reason:
            why = str(reason)
        except MALFORMED:
            why = f"{node.op_type} with operands that do not fit"
        else:
            return results
        self.program.not_known[node.output[0]] = why
        self.program.met_unknown += 1
        return self._opaque(call)

    def _opaque(self, call: NodeCall) -> list[TermValue]:
        """Results of which only the origin is known."""
        inputs = tuple(exact(call.table, value) for value in call.operands)
        results = []
        key = self._origin(call)
        for number, output in enumerate(call.node.output):
            origin = ("opaque", key, inputs, number)
            rank = rank_of(call, number)
            name = call.table.called(call.table.term(*origin), self._call_it(output))
            shape = None if rank is None else [symbol(f"{name}[{axis}]") for axis in range(rank)]
            results.append(call.table.opaque(origin, shape))
        return results

    def _origin(self, call: NodeCall) -> Hashable:
        """What tells the operator from all others; two draws of numbers are never one."""
        try:
            key = call.key()
        except NotKnownError:
            return call.node.op_type, call.table.unlike_any()
        if not draws(call.node):
            return key
        name = drawer(call.node)
        self.program.draws[name] += 1
        return key, name, self.program.draws[name]

    def _call_it(self, output: str) -> str | None:
        """A name for a tensor that means the same when the first model is read again."""
        outermost = self.program.first and not self.depth
        return f"{OPAQUE}{output!r}" if outermost else None

    def _function(
        self, node: onnx.NodeProto, operands: tuple[TermValue | None, ...]
    ) -> list[TermValue] | None:
        overload = getattr(node, "overload", "")
        function = self.program.functions.get((node.domain, node.op_type, overload))
        if function is None:
            return None
        given = {attribute.name: attribute for attribute in node.attribute}
        defaults = {attribute.name: attribute for attribute in function.attribute_proto}
        scope = LocalValues(self.program, versions_of(function.opset_import), depth=self.depth + 1)
        for name, value in zip(function.input, operands, strict=False):
            if value is not None:
                scope.values[name] = value
        left_out = set(function.input) - set(scope.values)
        bound = [_bound(inner, {**defaults, **given}, left_out) for inner in function.node]
        return scope.run_nodes(bound, list(function.output))

    def _initializer(self, tensor: onnx.TensorProto) -> TermValue:
        program = self.program
        if self.outer is not None or self.depth:
            return constant_of(program.table, self._numbers(tensor))
        if program.shared and uses_external_data(tensor):
            place = program.data.place(tensor)
            if place in program.shared:
                return program.table.opaque(("stored", place), list(tensor.dims))
        known = program.numbers
        if tensor.name not in known:
            known[tensor.name] = self._numbers(tensor)
        return constant_of(program.table, known[tensor.name])

    def _numbers(self, tensor: onnx.TensorProto) -> Numbers:
        return numbers_of(self.program.table.contents, self.program.data.array(tensor))


def _name_of(node: onnx.NodeProto) -> str:
    """The name that users know a node by: that of its first result if it has none of its own."""
    return node.name or next(filter(None, node.output), "")


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


def input_value(table: TermTable, port: onnx.ValueInfoProto, place: str) -> TermValue:
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
    name = dim.dim_param
    if name in ("", "?"):
        return symbol(f"{place}[{axis}]")
    # Quotes keep a name such as 'a*b' apart from what the proof itself calls a*b.
    return symbol(name if name.isidentifier() else repr(name))


def _bound(
    node: onnx.NodeProto, attributes: Mapping[str, onnx.AttributeProto], left_out: Container[str]
) -> onnx.NodeProto:
    """The node of a function, with what its call gives and without what the call leaves out."""
    bound = onnx.NodeProto()
    bound.CopyFrom(node)
    bound.input[:] = ["" if name in left_out else name for name in node.input]
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
            inner = [_bound(one, attributes, left_out) for one in body.node]
            del body.node[:]
            body.node.extend(inner)
    return bound


def versions_of(opsets: Iterable[onnx.OperatorSetIdProto]) -> dict[str, int]:
    """The versions of operators, by domain."""
    return {"" if o.domain in STANDARD else o.domain: o.version for o in opsets}
