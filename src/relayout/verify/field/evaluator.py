"""Runs a model over the field, node after node."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import onnx
from onnx import numpy_helper

from relayout.verify.field.call import FieldCall
from relayout.verify.field.computing import computed
from relayout.verify.field.uses import in_order, last_uses
from relayout.verify.field.values import FieldSequence, FieldTensor, UnknownValue, true_tensor

if TYPE_CHECKING:
    from relayout.verify.field.context import FieldContext
    from relayout.verify.field.values import FieldValue

Named = MutableMapping[str, "FieldValue"]
Opsets = Mapping[str, int]
STANDARD = ("", "ai.onnx")
UNFED = ("Shape", "Size")
"""Results of these depend on lengths only."""


@dataclass(frozen=True)
class FieldRun:
    """One run of one model."""

    model: onnx.ModelProto
    context: FieldContext
    functions: dict[tuple[str, str, str], onnx.FunctionProto] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for function in self.model.functions:
            key = _plain(function.domain), function.name, function.overload
            self.functions[key] = function

    def outputs(self, feeds: Mapping[str, FieldValue]) -> dict[str, FieldValue]:
        """The values of the model's outputs."""
        graph = self.model.graph
        values: Named = dict(feeds)
        body = _RunningBody(self, _opsets(self.model.opset_import), {})
        results = body.run_graph(graph, values)
        return {value.name: result for value, result in zip(graph.output, results, strict=True)}


@dataclass(frozen=True)
class _RunningBody:
    """A graph or function that is run: its opsets, and the attributes that it was called with."""

    run: FieldRun
    opsets: Opsets
    bound: Mapping[str, onnx.AttributeProto]

    def run_graph(self, graph: onnx.GraphProto, values: Named) -> list[FieldValue]:
        """The outputs of a graph; `values` has its inputs and all that it can see."""
        for tensor in graph.initializer:
            if not _is_own(values, tensor.name):
                values[tensor.name] = true_tensor(numpy_helper.to_array(tensor))
        for sparse in graph.sparse_initializer:
            values.setdefault(sparse.values.name, UnknownValue("a sparse constant"))
        self.run_nodes(graph.node, [value.name for value in graph.output], values)
        return [values.get(value.name) for value in graph.output]

    def run_nodes(
        self, nodes: Sequence[onnx.NodeProto], outputs: Sequence[str], values: Named
    ) -> None:
        """Run nodes; a value is forgotten after its last use."""
        nodes = in_order(nodes)
        last = last_uses(nodes, outputs)
        for index, node in enumerate(nodes):
            for name, value in zip(node.output, self.run_node(node, values), strict=True):
                if name:
                    values[name] = value
            for name in last.get(index, ()):
                if _is_own(values, name):
                    del values[name]

    def run_node(self, node: onnx.NodeProto, values: Named) -> list[FieldValue]:
        operands = tuple(values[name] if name else None for name in node.input)
        unknown = next((each for each in operands if isinstance(each, UnknownValue)), None)
        if unknown is not None:
            return [unknown] * len(node.output)
        function = self.run.functions.get((_plain(node.domain), node.op_type, node.overload))
        results: Sequence[FieldValue]
        if function is not None:
            results = self._inlined(function, node, operands)
        else:
            results = computed(self._call(node, operands, values))
        fed = node.op_type not in UNFED and any(_is_fed(operand) for operand in operands)
        padded = [*results, *[None] * (len(node.output) - len(results))]
        return [_fed(value) if fed else value for value in padded[: len(node.output)]]

    def _call(
        self, node: onnx.NodeProto, operands: tuple[FieldValue, ...], values: Named
    ) -> FieldCall:
        domain = _plain(node.domain)

        def run_body(graph: onnx.GraphProto, given: Sequence[FieldValue]) -> list[FieldValue]:
            own = dict(zip((value.name for value in graph.input), given, strict=False))
            return self.run_graph(graph, ChainMap(own, values))

        return FieldCall(
            op_type=node.op_type,
            domain=domain,
            version=self.opsets.get(domain, 1),
            attributes=dict(self._attributes(node)),
            operands=operands,
            results=len(node.output),
            context=self.run.context,
            run_body=run_body,
            run_function=run_function,
        )

    def _attributes(self, node: onnx.NodeProto) -> Iterator[tuple[str, Any]]:
        for attribute in node.attribute:
            source = attribute
            if attribute.ref_attr_name:
                if attribute.ref_attr_name not in self.bound:
                    continue
                source = self.bound[attribute.ref_attr_name]
            yield attribute.name, _plain_value(onnx.helper.get_attribute_value(source))

    def _inlined(
        self, function: onnx.FunctionProto, node: onnx.NodeProto, operands: Sequence[FieldValue]
    ) -> list[FieldValue]:
        bound = {attribute.name: attribute for attribute in function.attribute_proto}
        for attribute in node.attribute:
            given = (
                self.bound.get(attribute.ref_attr_name) if attribute.ref_attr_name else attribute
            )
            if given is not None:
                bound[attribute.name] = given
        padded = [*operands, *[None] * (len(function.input) - len(operands))]
        values: Named = dict(zip(function.input, padded, strict=True))
        body = replace(self, opsets=_opsets(function.opset_import), bound=bound)
        body.run_nodes(function.node, list(function.output), values)
        return [values.get(name) for name in function.output]


def run_function(function: onnx.FunctionProto, call: FieldCall) -> list[FieldValue]:
    """The results of a call by a body that the standard defines it by."""
    run = FieldRun(onnx.ModelProto(), call.context)
    padded = [*call.operands, *[None] * (len(function.input) - len(call.operands))]
    values: Named = dict(zip(function.input, padded, strict=True))
    opsets = {"": call.version, **_opsets(function.opset_import)}
    bound = {attribute.name: attribute for attribute in function.attribute_proto}
    for name, value in call.attributes.items():
        bound[name] = onnx.helper.make_attribute(name, value)
    _RunningBody(run, opsets, bound).run_nodes(function.node, list(function.output), values)
    return [values.get(name) for name in function.output]


def _is_own(values: Named, name: str) -> bool:
    """Whether a name is one of the graph that runs, not of one around it."""
    return name in (values.maps[0] if isinstance(values, ChainMap) else values)


def _opsets(imports: Sequence[onnx.OperatorSetIdProto]) -> dict[str, int]:
    return {_plain(each.domain): each.version for each in imports}


def _plain(domain: str) -> str:
    return "" if domain in STANDARD else domain


def _plain_value(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode(errors="surrogateescape")
    if isinstance(value, list) and value and isinstance(value[0], bytes):
        return [each.decode(errors="surrogateescape") for each in value]
    return value


def _is_fed(value: FieldValue) -> bool:
    if isinstance(value, FieldSequence):
        return any(item.fed for item in value.items)
    return isinstance(value, FieldTensor) and value.fed


def _fed(value: FieldValue) -> FieldValue:
    if isinstance(value, FieldSequence):
        return FieldSequence(tuple(replace(item, fed=True) for item in value.items))
    return replace(value, fed=True) if isinstance(value, FieldTensor) else value
