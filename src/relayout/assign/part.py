"""The parts of a model whose layouts are chosen together: a graph with the bodies nested in it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import onnx_ir as ir

from relayout.graph.region import Region, regions_of, subgraphs_of
from relayout.ops.bodies import has_ties
from relayout.ops.measure import runs_of


@dataclass(slots=True)
class Part:
    """A graph and the bodies of control flow in it that orders can cross into."""

    is_main: bool
    regions: dict[ir.Graph, Region] = field(default_factory=dict)
    """By their graphs, outer ones first."""
    owners: dict[ir.Graph, ir.Node] = field(default_factory=dict)
    """The nodes that the graphs are bodies of."""
    runs: dict[ir.Graph, int] = field(default_factory=dict)
    """How often each graph counts as run."""

    @property
    def root(self) -> Region:
        return next(iter(self.regions.values()))

    def region(self, node: ir.Node) -> Region:
        return self.regions[self.parent_graph(node)]

    def parent_graph(self, node: ir.Node) -> ir.Graph:
        if node.graph is None:
            raise ValueError(f"node {node.name!r} belongs to no graph")
        return node.graph

    def nodes(self, graph: ir.Graph | None = None) -> Iterator[ir.Node]:
        """Every node, those of its bodies before the node itself.

        The file format bounds how deep bodies are nested.
        """
        for node in self.root.graph if graph is None else graph:
            for body in subgraphs_of(node) if has_ties(node) else ():
                yield from self.nodes(body)
            yield node

    def graph_of(self, value: ir.Value) -> ir.Graph:
        """Where a value is made; what comes from outside is there from the start."""
        graph = value.graph
        return graph if graph is not None and graph in self.regions else self.root.graph

    def node_in(self, graph: ir.Graph, reader: ir.Graph, node: ir.Node | None) -> ir.Node | None:
        """The node of `graph` in which a node of a graph nested in it stands; None is the end."""
        while reader is not graph:
            node = self.owners[reader]
            reader = self.parent_graph(node)
        return node

    def common(self, first: ir.Graph, second: ir.Graph) -> ir.Graph:
        """The innermost graph that contains both."""
        around = set(self._outwards(first))
        return next(graph for graph in self._outwards(second) if graph in around)

    def outside_loops(self, graph: ir.Graph, made: ir.Graph) -> ir.Graph:
        """The innermost graph around `graph` that runs no more often than `made` around it does."""
        found = (each for each in self._outwards(graph) if self.runs[each] == self.runs[made])
        return next(found, made)

    def _outwards(self, graph: ir.Graph) -> Iterator[ir.Graph]:
        yield graph
        while graph in self.owners:
            graph = self.parent_graph(self.owners[graph])
            yield graph


def parts_of(model: ir.Model) -> list[Part]:
    """Every part of a model, outer ones before those they contain.

    The bodies of a node that orders cannot cross into are parts of their own.
    """
    regions = list(regions_of(model))
    runs = runs_of(regions)
    parts: list[Part] = []
    around: dict[ir.Graph, tuple[Part, ir.Node]] = {}
    for region in regions:
        graph = region.graph
        part, owner = around.get(graph, (None, None))
        if part is None or owner is None:
            part = Part(is_main=graph is model.graph)
            parts.append(part)
        else:
            part.owners[graph] = owner
        part.regions[graph] = region
        part.runs[graph] = runs[graph]
        for node in filter(has_ties, graph):
            around.update((body, (part, node)) for body in subgraphs_of(node))
    return parts
