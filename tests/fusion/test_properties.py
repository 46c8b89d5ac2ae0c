"""What holds for all graphs, tried on random ones."""

from __future__ import annotations

import random

import onnx
import pytest

from relayout.fusion.border import results_of
from relayout.fusion.expressions import Tag
from relayout.fusion.groups import Limits
from relayout.fusion.partition import partition, unfused
from relayout.fusion.traffic import traffic_of
from relayout.fusion.unions import Union
from relayout.graph.region import Region, regions_of
from relayout.ops.kind import Kind
from tests.fusion.checking import check_modes
from tests.fusion.random_expressions import drawn, partitioned
from tests.fusion.random_networks import random_network
from tests.rewrite.rewriting import to_ir
from tests.suites.random_graphs import random_graph

DRAWN = 1500
NETWORKS = 150
GRAPHS = 60


def _region(model: onnx.ModelProto) -> Region:
    return next(regions_of(to_ir(model)))


def test_groups_of_drawn_graphs_have_one_exit_and_one_anchor() -> None:
    for seed in range(DRAWN):
        graph = drawn(seed)
        order, unions = partitioned(graph)
        sizes: dict[Union, int] = {}
        for vertex, union in zip(order, unions, strict=True):
            whole = union.find()
            sizes[whole] = sizes.get(whole, 0) + 1
            if vertex is not whole.root:
                assert not vertex.is_external
                assert all(unions[reader.index].find() is whole for reader, _ in vertex.uses)
        for whole, size in sizes.items():
            inside = [v for v, union in zip(order, unions, strict=True) if union.find() is whole]
            assert sum(vertex.kind is Kind.COMPLEX for vertex in inside) <= 1
            assert size <= graph.max_depth
            assert whole.size == size


def test_returning_outputs_together_changes_no_group() -> None:
    """Marking every output as read from outside equals returning them in a tuple."""
    for seed in range(300):
        graph = drawn(seed)
        order, _unions = partitioned(graph)
        assert sum(v.is_external and v.expression.tag is Tag.CALL for v in order) == len(
            set(graph.outputs)
        )


@pytest.mark.parametrize("first", range(0, NETWORKS, 50))
def test_random_networks(first: int) -> None:
    for seed in range(first, first + 50):
        check_modes(_region(random_network(seed)))


@pytest.mark.parametrize("depth", [2, 3, 5])
def test_random_networks_with_a_depth_limit(depth: int) -> None:
    for seed in range(20):
        tvm, ours = check_modes(_region(random_network(seed)), Limits(max_depth=depth))
        assert max(len(group.nodes) for group in ours.groups) <= depth
        assert max(len(group.nodes) for group in tvm.groups) <= depth


def test_graphs_of_every_operator() -> None:
    for seed in range(GRAPHS):
        for region in regions_of(to_ir(random_graph(seed).model)):
            check_modes(region)


def test_fusing_moves_fewer_bytes_than_not_fusing() -> None:
    for seed in range(30):
        region = _region(random_network(seed))
        alone, fused = traffic_of(unfused(region)), traffic_of(partition(region, "tvm"))
        assert fused.bytes_moved <= alone.bytes_moved
        assert fused.kernels <= alone.kernels


def test_a_group_by_tvm_has_one_result() -> None:
    for seed in range(60):
        found = partition(_region(random_network(seed)), "tvm")
        for group, results in zip(found.groups, results_of(found), strict=True):
            assert len(results) <= 1 or len(group.nodes) == 1


def _stated(region: Region) -> list[list[str]]:
    found = partition(region)
    return [[node.name or "" for node in group.nodes] for group in found.groups]


def test_the_same_graph_gives_the_same_groups() -> None:
    for seed in range(20):
        model = random_network(seed)
        assert _stated(_region(model)) == _stated(_region(model))


def test_tvm_groups_do_not_depend_on_the_order_of_nodes_in_the_file() -> None:
    for seed in range(40):
        model = random_network(seed)
        shuffled = _shuffled(model, seed)
        both = (partition(_region(each), "tvm") for each in (model, shuffled))
        first, second = (
            {frozenset(node.name or "" for node in group.nodes) for group in found.groups}
            for found in both
        )
        assert first == second


def _shuffled(model: onnx.ModelProto, seed: int) -> onnx.ModelProto:
    """The same graph with its nodes in another valid order."""
    chance = random.Random(seed)
    waiting, known = list(model.graph.node), {"x", *(t.name for t in model.graph.initializer)}
    order: list[onnx.NodeProto] = []
    while waiting:
        ready = [node for node in waiting if set(node.input) <= known]
        order.append(chance.choice(ready))
        waiting.remove(order[-1])
        known.update(order[-1].output)
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    del copy.graph.node[:]
    copy.graph.node.extend(order)
    return copy


def test_every_value_between_groups_has_a_refusal() -> None:
    for seed in range(60):
        found = partition(_region(random_network(seed)))
        refused = {
            (refusal.producer.name, refusal.consumer.name)
            for refusal in found.refusals
            if refusal.consumer is not None
        }
        home = {node.name: number for number, g in enumerate(found.groups) for node in g.nodes}
        for value in (value for results in results_of(found) for value in results):
            producer = value.producer()
            assert producer is not None
            for reader, _place in value.uses():
                is_inside = home[reader.name] == home[producer.name]
                assert is_inside or (producer.name, reader.name) in refused
        assert all(refusal.reason for refusal in found.refusals)
