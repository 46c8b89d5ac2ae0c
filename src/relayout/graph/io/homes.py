"""Which function takes which parts of a graph, and what has to stay."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import onnx_ir as ir


@dataclass(frozen=True, slots=True)
class Outline:
    """Nodes of one graph that become a function, called once in their place."""

    name: str
    nodes: tuple[ir.Node, ...]
    copies: tuple[ir.Node, ...]
    """Those of the nodes that belong elsewhere and are only repeated in the function."""
    constants: tuple[ir.Value, ...]
    """Constants that the function has inside."""
    inputs: tuple[ir.Value, ...]
    outputs: tuple[ir.Value, ...]
    notes: Mapping[str, str]
    """More metadata of the function."""


Homes: TypeAlias = dict[ir.Node | ir.Value, Outline]
"""The nodes and initialisers that leave a graph, each with the function that takes it."""


def homes_of(graph: ir.Graph, outlines: Sequence[Outline], pinned: Collection[str]) -> Homes:
    """Which function takes which part: nodes go where they belong.

    A constant or a repeated node goes to the first function that has it, if all its consumers have
    it; else it stays, and the functions have copies. Initialisers with a pinned name stay.
    """
    homes: Homes = {
        node: outline
        for outline in outlines
        for node in outline.nodes
        if node not in outline.copies
    }
    inputs = {value for outline in outlines for value in outline.inputs}
    first = _first_having(outlines)
    for node in reversed(graph):
        if node in first and not any(_is_needed(value, homes, inputs) for value in node.outputs):
            homes.setdefault(node, first[node])
    for name, value in graph.initializers.items():
        free = name not in pinned and not value.is_graph_input()
        if free and value in first and not _is_needed(value, homes, inputs):
            homes[value] = first[value]
    return homes


def _first_having(outlines: Sequence[Outline]) -> Homes:
    """The first function that repeats a node, or has a constant inside."""
    first: Homes = {}
    for outline in outlines:
        constants = (value.producer() or value for value in outline.constants)
        for part in (*outline.copies, *constants):
            first.setdefault(part, outline)
    return first


def _is_needed(value: ir.Value, homes: Homes, inputs: Collection[ir.Value]) -> bool:
    """Whether anything that stays reads a value."""
    if value.is_graph_output() or value in inputs:
        return True
    return any(reader not in homes for reader, _index in value.uses())
