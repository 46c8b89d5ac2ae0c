"""What a group reads from memory and what it writes there."""

from __future__ import annotations

from collections.abc import Iterator

import onnx_ir as ir

from relayout.fusion.groups import Group, Partition
from relayout.graph.read import constant_of


def operands_of(group: Group) -> tuple[ir.Value, ...]:
    """The values that a group takes from outside, each once, in order of first use."""
    inside = {id(value) for node in (*group.nodes, *group.helpers) for value in node.outputs}
    inside |= {id(value) for value in group.constants}
    found: dict[int, ir.Value] = {}
    for node in group.nodes:
        for value in node.inputs:
            if value is not None and id(value) not in inside:
                found.setdefault(id(value), value)
    return tuple(found.values())


def inputs_of(group: Group) -> tuple[ir.Value, ...]:
    """What the function of a group is given: its operands, and constants it cannot have inside."""
    outside = (value for value in group.constants if not can_be_inside(value))
    return (*operands_of(group), *outside)


def can_be_inside(value: ir.Value) -> bool:
    """Whether a function can have a constant inside.

    Data in other files stays with the model: not every runtime finds it from a function. So does
    what nodes compute, ahead of all kernels.
    """
    tensor = constant_of(value)
    return tensor is not None and not isinstance(tensor, ir.ExternalTensor)


def results_of(partition: Partition) -> list[tuple[ir.Value, ...]]:
    """For each group the values that others read: groups, the graph, bodies, what runs ahead."""
    taken = {id(value) for group in partition.groups for value in operands_of(group)}
    known = {id(node) for group in partition.groups for node in group.nodes}
    return [tuple(_results(group, taken, known)) for group in partition.groups]


def _results(group: Group, taken: set[int], known: set[int]) -> Iterator[ir.Value]:
    own = _own_helpers(group)
    for node in group.nodes:
        for value in node.outputs if node not in group.duplicates else ():
            if id(value) in taken or _is_read_elsewhere(value, known, own):
                yield value


def _own_helpers(group: Group) -> set[int]:
    """The helpers of a group that nothing outside of it needs."""
    nodes = {id(node) for node in group.nodes}
    own: set[int] = set()
    for node in reversed(group.helpers):
        if not any(_is_read_elsewhere(value, nodes, own) for value in node.outputs):
            own.add(id(node))
    return own


def _is_read_elsewhere(value: ir.Value, known: set[int], own: set[int]) -> bool:
    """Whether the graph reads a value, or a node that is none of these."""
    if value.is_graph_output():
        return True
    return any(id(reader) not in known and id(reader) not in own for reader, _ in value.uses())
