"""Groups made at random, to try how they are written: no operator has to be fit for them."""

from __future__ import annotations

import random
from collections.abc import Iterator

import onnx
import onnx_ir as ir

from relayout.fuse.emit import emit
from relayout.fuse.groups import Group, Partition
from relayout.graph.load import load
from relayout.graph.read import constant_of, is_op
from relayout.graph.region import regions_of, subgraphs_of
from relayout.ops.kind import Kind

LONGEST = 5


def cut(model: onnx.ModelProto, seed: int) -> onnx.ModelProto:
    """The model with random groups in all of its graphs."""
    loaded = load(model)
    chance = random.Random(seed)
    partitions = [random_partition(region.graph, chance) for region in regions_of(loaded.ir)]
    return emit(loaded, partitions)


def random_partition(graph: ir.Graph, chance: random.Random) -> Partition:
    """Neighbours in the order of the graph: such groups never wait for each other in a circle."""
    groups = [_group(nodes, chance) for nodes in _runs(graph, chance)]
    return Partition(graph, tuple(groups), (), "relayout")


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


def _group(nodes: list[ir.Node], chance: random.Random) -> Group:
    operands = dict.fromkeys(v for node in nodes for v in node.inputs if v is not None)
    producers = dict.fromkeys(value.producer() for value in operands)
    copies = [
        node
        for node in producers
        if node is not None and _may_be_repeated(node, nodes) and chance.random() < 0.5
    ]
    every = [*copies, *nodes]
    read = dict.fromkeys(v for node in every for v in node.inputs if v is not None)
    small = [value for value in read if _is_small(value) and chance.random() < 0.7]
    return Group(tuple(every), Kind.COMPLEX, None, tuple(copies), tuple(small))


def _may_be_repeated(node: ir.Node, nodes: list[ir.Node]) -> bool:
    if node in nodes or node.graph is not nodes[0].graph or is_op(node, "Constant"):
        return False
    return not any(subgraphs_of(node)) and "Random" not in node.op_type


def _is_small(value: ir.Value) -> bool:
    tensor = constant_of(value)
    return tensor is not None and tensor.size <= 4
