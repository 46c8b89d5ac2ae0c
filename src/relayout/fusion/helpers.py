"""What runs ahead of all kernels, and the groups that surround it in the file.

Given   a = Relu(x); s = Shape(a); t = Concat(s, c); y = Reshape(a, t), with a and y in one group
Result  the function of the group has s and t inside: outside, they would wait for the function,
        and the function for them

Where such a circle leads through other groups, the groups on it are taken apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import replace
from heapq import heapify, heappop, heappush
from typing import TypeAlias, TypeVar

import onnx_ir as ir

from relayout.fusion.groups import Group
from relayout.graph.region import captured_by

_Unit: TypeAlias = int | ir.Node
"""A group by number, or a node that runs ahead."""

_Needs: TypeAlias = dict[_Unit, set[_Unit]]

_Item = TypeVar("_Item", ir.Node, int | ir.Node)


def with_helpers(groups: Sequence[Group], ahead: Set[ir.Node]) -> list[Group]:
    """The groups, each with what runs ahead between its own nodes."""
    if not ahead:
        return list(groups)
    return [_with_helpers(group, ahead) if len(group.nodes) > 1 else group for group in groups]


def _with_helpers(group: Group, ahead: Set[ir.Node]) -> Group:
    needed = _reached(group.nodes, ahead, _sources)
    after = _reached(group.nodes, ahead, _readers)
    found = dict.fromkeys(node for node in needed if node in after)
    helpers = tuple(_ordered({node: found.keys() & set(_sources(node)) for node in found}))
    if not helpers:
        return group
    inside = {value for node in (*group.nodes, *helpers) for value in node.outputs}
    read = (value for node in helpers for value in node.inputs if value is not None)
    constants = (value for value in (*group.constants, *read) if value not in inside)
    return replace(group, helpers=helpers, constants=tuple(dict.fromkeys(constants)))


def runnable_order(groups: Sequence[Group], ahead: Set[ir.Node]) -> tuple[list[int], set[int]]:
    """The groups, by number, in an order in which they can run; those that wait in a circle."""
    homes: dict[ir.Node, _Unit] = {node: node for node in ahead}
    for number, group in enumerate(groups):
        homes.update((node, number) for node in group.nodes)
    needs: _Needs = {node: _units([node], homes) for node in ahead}
    for number, group in enumerate(groups):
        nodes = (*group.nodes, *group.helpers)
        needs[number] = _units(nodes, homes) - {number, *group.helpers}
    order = _ordered(needs)
    stuck = needs.keys() - set(order)
    readers: _Needs = {unit: set() for unit in stuck}
    for unit in stuck:
        for need in needs[unit] & stuck:
            readers[need].add(unit)
    circle = stuck - set(_ordered(readers))
    groups_only = [unit for unit in order if isinstance(unit, int)]
    return groups_only, {unit for unit in circle if isinstance(unit, int)}


def _units(nodes: Iterable[ir.Node], homes: dict[ir.Node, _Unit]) -> set[_Unit]:
    """The units that make what some nodes read."""
    read = (value for node in nodes for value in (*node.inputs, *captured_by(node)))
    makers = (value.producer() for value in read if value is not None)
    return {homes[maker] for maker in makers if maker in homes}


def _ordered(needs: dict[_Item, set[_Item]]) -> list[_Item]:
    """Items after those that they need, without any that can never run."""
    readers: dict[_Item, list[_Item]] = {unit: [] for unit in needs}
    for unit, needed in needs.items():
        for need in needed:
            readers[need].append(unit)
    place = {unit: number for number, unit in enumerate(needs)}
    missing = {unit: len(needed) for unit, needed in needs.items()}
    ready = [(place[unit], unit) for unit, number in missing.items() if not number]
    heapify(ready)
    order: list[_Item] = []
    while ready:
        order.append(heappop(ready)[1])
        for reader in readers[order[-1]]:
            missing[reader] -= 1
            if not missing[reader]:
                heappush(ready, (place[reader], reader))
    return order


def _reached(
    start: Iterable[ir.Node], ahead: Set[ir.Node], step: Callable[[ir.Node], Iterator[ir.Node]]
) -> dict[ir.Node, None]:
    """What runs ahead and is reached from some nodes through nothing else."""
    found: dict[ir.Node, None] = {}
    waiting = list(start)
    while waiting:
        for node in step(waiting.pop()):
            if node in ahead and node not in found:
                found[node] = None
                waiting.append(node)
    return found


def _sources(node: ir.Node) -> Iterator[ir.Node]:
    for value in node.inputs:
        producer = None if value is None else value.producer()
        if producer is not None:
            yield producer


def _readers(node: ir.Node) -> Iterator[ir.Node]:
    for value in node.outputs:
        yield from (reader for reader, _place in value.uses())
