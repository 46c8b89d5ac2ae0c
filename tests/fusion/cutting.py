"""Groups made by hand or at random, to try how they are written: any operators will do."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence

import onnx
import onnx_ir as ir

from relayout.fusion.emit import emit
from relayout.fusion.groups import Group, Partition
from relayout.graph.io.load import load
from relayout.graph.read import constant_of, is_op
from relayout.graph.region import regions_of, subgraphs_of
from relayout.ops.kind import Kind

LONGEST = 5
SMALL = 4
"""Constants with at most so many elements may live in a group."""


def grouped(
    model: onnx.ModelProto,
    *groups: str,
    inside: str = "",
    repeated: str = "",
) -> onnx.ModelProto:
    """The model with these groups, each given by the names of what its nodes write.

    `inside` names the constants that live in the groups which read them, `repeated` the nodes that
    groups repeat though they belong elsewhere.
    """
    loaded = load(model)
    partitions = [
        Partition(region.graph, tuple(_named(region.graph, groups, inside, repeated)))
        for region in regions_of(loaded.ir)
    ]
    return emit(loaded, partitions)


def cut(model: onnx.ModelProto, seed: int) -> onnx.ModelProto:
    """The model with random groups in all of its graphs."""
    loaded = load(model)
    chance = random.Random(seed)
    partitions = [random_partition(region.graph, chance) for region in regions_of(loaded.ir)]
    return emit(loaded, partitions)


def random_partition(graph: ir.Graph, chance: random.Random) -> Partition:
    """Neighbours in the order of the graph: such groups never wait for each other in a circle."""
    groups = [_random_group(nodes, chance) for nodes in _runs(graph, chance)]
    return Partition(graph, tuple(groups))


def _named(graph: ir.Graph, groups: Sequence[str], inside: str, repeated: str) -> Iterator[Group]:
    writers = {value.name: node for node in graph for value in node.outputs}
    chosen = [[writers[name] for name in text.split()] for text in groups if _is_in(text, writers)]
    copies = [writers[name] for name in repeated.split() if name in writers]
    taken = [node for nodes in chosen for node in nodes if node not in copies]
    alone = [[node] for node in graph if node not in taken and not is_op(node, "Constant")]
    for nodes in (*chosen, *alone):
        read = [value for value in _read_by(nodes) if value.name in inside.split()]
        again = [node for node in nodes if node in copies and len(nodes) > 1]
        yield Group(tuple(nodes), Kind.COMPLEX, nodes[0], tuple(again), tuple(read))


def _is_in(text: str, writers: dict[str | None, ir.Node]) -> bool:
    return all(name in writers for name in text.split())


def _runs(graph: ir.Graph, chance: random.Random) -> Iterator[list[ir.Node]]:
    run: list[ir.Node] = []
    for node in graph:
        if is_op(node, "Constant"):
            continue
        alone = any(subgraphs_of(node))
        if run and (alone or len(run) >= chance.randint(1, LONGEST)):
            yield run
            run = []
        if alone:
            yield [node]
        else:
            run.append(node)
    if run:
        yield run


def _random_group(nodes: list[ir.Node], chance: random.Random) -> Group:
    if any(subgraphs_of(nodes[0])):
        return Group(tuple(nodes), Kind.OPAQUE)
    producers = dict.fromkeys(value.producer() for value in _read_by(nodes))
    copies = [
        node
        for node in producers
        if node is not None and _may_be_repeated(node, nodes) and chance.random() < 0.5
    ]
    every = [*copies, *nodes]
    small = [value for value in _read_by(every) if _is_small(value) and chance.random() < 0.7]
    return Group(tuple(every), Kind.COMPLEX, None, tuple(copies), tuple(small))


def _read_by(nodes: Iterable[ir.Node]) -> list[ir.Value]:
    return list(dict.fromkeys(v for node in nodes for v in node.inputs if v is not None))


def _may_be_repeated(node: ir.Node, nodes: list[ir.Node]) -> bool:
    if node in nodes or node.graph is not nodes[0].graph or is_op(node, "Constant"):
        return False
    return not any(subgraphs_of(node)) and "Random" not in node.op_type


def _is_small(value: ir.Value) -> bool:
    tensor = constant_of(value)
    return tensor is not None and tensor.size <= SMALL
