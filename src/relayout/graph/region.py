"""The graphs of a model: its main graph, the bodies of control flow, the bodies of functions."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping, Sequence
from dataclasses import dataclass, field

import onnx_ir as ir

from relayout.graph.read import KnownValues, NodeView, constant_of, version_of, view_of

KERNEL_DOMAIN = "relayout"
"""The domain of functions that a target has kernels for; other runtimes run their bodies."""


@dataclass(frozen=True, slots=True)
class Region:
    """One list of nodes with what is known from its surroundings."""

    graph: ir.Graph
    opsets: MutableMapping[str, int]
    in_function: bool
    """A function has no initialisers, so its constants are nodes."""
    known: KnownValues = field(default_factory=dict)
    """Values that nodes compute and that are the same in every run."""

    @property
    def version(self) -> int:
        """The opset version of the standard domain."""
        return version_of(self.opsets, "")

    def view(self, node: ir.Node) -> NodeView:
        return view_of(node, self.opsets, self.known)

    def is_constant(self, value: ir.Value) -> bool:
        """Whether a value is the same in every run."""
        return constant_of(value) is not None or value in self.known


def regions_of(model: ir.Model) -> Iterator[Region]:
    """Every graph of the model that is compiled, outer ones before the ones they contain."""
    yield from _nested(model.graph, model.graph.opset_imports, in_function=False)
    for function in model.functions.values():
        if function.domain == KERNEL_DOMAIN:
            continue
        yield from _nested(function.graph, function.opset_imports, in_function=True)


def subgraphs_of(node: ir.Node) -> Iterator[ir.Graph]:
    """The bodies a node carries in its attributes."""
    for attribute in node.attributes.data.values():
        if attribute.type in _BODIES:
            yield from _bodies_in(attribute)


_BODIES = frozenset((ir.AttributeType.GRAPH, ir.AttributeType.GRAPHS))


def _bodies_in(attribute: ir.Attr) -> Sequence[ir.Graph]:
    if attribute.is_ref():
        return ()
    is_one = attribute.type is ir.AttributeType.GRAPH
    return (attribute.as_graph(),) if is_one else attribute.as_graphs()


def bodies_of(node: ir.Node) -> list[ir.Graph]:
    """Every graph inside a node, at any depth, outer ones first."""
    found = list(subgraphs_of(node))
    for graph in found:
        found.extend(body for inner in graph for body in subgraphs_of(inner))
    return found


def captured_by(node: ir.Node) -> list[ir.Value]:
    """What the bodies of a node read from outside of it, each once."""
    bodies = bodies_of(node)
    if not bodies:
        return []
    inner = {id(body) for body in bodies}
    readers = (reader for body in bodies for reader in body)
    read = (value for reader in readers for value in reader.inputs if value is not None)
    given = (value for body in bodies for value in body.outputs)
    return list(dict.fromkeys(value for value in (*read, *given) if id(value.graph) not in inner))


def _nested(
    graph: ir.Graph, opsets: MutableMapping[str, int], *, in_function: bool
) -> Iterator[Region]:
    waiting = [graph]
    while waiting:
        current = waiting.pop()
        yield Region(current, opsets, in_function)
        inner = [
            body
            for node in current
            if (held := node.attributes.data)
            for each in held.values()
            if each.type in _BODIES
            for body in _bodies_in(each)
        ]
        waiting.extend(reversed(inner))
