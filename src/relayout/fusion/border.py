"""What a group reads from memory and what it writes there."""

from __future__ import annotations

import onnx_ir as ir

from relayout.fusion.groups import Group, Partition


def operands_of(group: Group) -> tuple[ir.Value, ...]:
    """The values that a group takes from outside, each once, in order of first use."""
    inside = {id(value) for node in group.nodes for value in node.outputs}
    inside |= {id(value) for value in group.constants}
    found: dict[int, ir.Value] = {}
    for node in group.nodes:
        for value in node.inputs:
            if value is not None and id(value) not in inside:
                found.setdefault(id(value), value)
    return tuple(found.values())


def results_of(partition: Partition) -> list[tuple[ir.Value, ...]]:
    """For each group the values that others read, or that the graph or a body inside it does."""
    taken = {id(value) for group in partition.groups for value in operands_of(group)}
    known = {id(node) for group in partition.groups for node in group.nodes}
    return [
        tuple(
            value
            for node in group.nodes
            if node not in group.duplicates
            for value in node.outputs
            if id(value) in taken or _is_read_elsewhere(value, known)
        )
        for group in partition.groups
    ]


def _is_read_elsewhere(value: ir.Value, known: set[int]) -> bool:
    """Whether the graph, or a body of control flow inside it, reads a value."""
    if value.is_graph_output():
        return True
    return any(id(reader) not in known for reader, _index in value.uses())
