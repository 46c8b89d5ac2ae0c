"""No group exceeds a limit; where TVM's own do, that is said."""

from __future__ import annotations

import random

import onnx
import pytest

from relayout.fusion.groups import Limits
from relayout.fusion.partition import RELAYOUT, TVM, partition, unfused
from relayout.fusion.traffic import traffic_of
from relayout.graph.region import regions_of
from relayout.optimizer.fuse import FuseResult
from tests.fusion.checking import check_partition
from tests.fusion.grouping import region_of
from tests.fusion.random_networks import random_network
from tests.fusion.written import arguments_of, functions_of, fused, operators_in
from tests.rewrite.rewriting import parse, to_ir
from tests.suites.random_graphs import random_graph

GRAPHS = 120
DEPTHS = (1, 2, 3, 6)
ARGUMENTS = (0, 1, 2, 3, 4, 8)

FOLLOWED = "mode tvm follows TVM, which exceeds its own limit here"


def drawn(seed: int) -> tuple[onnx.ModelProto, int, int]:
    chance = random.Random(seed)
    model = random_network(seed) if seed % 2 else random_graph(seed).model
    return model, chance.choice(DEPTHS), chance.choice(ARGUMENTS)


def beyond(model: onnx.ModelProto, depth: int, arguments: int) -> tuple[int, int]:
    """How many functions exceed each limit."""
    functions = functions_of(model)
    large = sum(len(operators_in(function)) > depth for function in functions)
    wide = sum(arguments_of(function) > arguments for function in functions) if arguments else 0
    return large, wide


def test_our_groups_exceed_no_limit() -> None:
    made = 0
    for seed in range(GRAPHS):
        model, depth, arguments = drawn(seed)
        result = fused(model, mode=RELAYOUT.name, max_depth=depth, max_args=arguments)
        assert beyond(result.model, depth, arguments) == (0, 0), seed
        made += len(functions_of(result.model))
        assert _told(result) == []
    assert made > GRAPHS


def test_that_tvm_exceeds_the_limit_on_arguments_is_said() -> None:
    exceeded = 0
    for seed in range(1, GRAPHS, 2):
        model, depth, arguments = drawn(seed)
        result = fused(model, mode=TVM.name, max_depth=depth, max_args=arguments)
        _, wide = beyond(result.model, depth, arguments)
        text = f"groups that take more than {arguments} arguments: {wide}; {FOLLOWED}"
        assert _told(result) == ([text] if wide else [])
        exceeded += wide
    assert exceeded > 10


def test_that_tvm_exceeds_the_limit_on_operators_is_said() -> None:
    """A fusion that it put off until arguments are counted is not asked for its depth again."""
    exceeded = 0
    for seed in range(0, GRAPHS, 2):
        model, depth, arguments = drawn(seed)
        result = fused(model, mode=TVM.name, max_depth=depth, max_args=arguments)
        large = sum(len(group.operators) > depth for group in result.record().groups)
        text = f"groups of more than {depth} operators: {large}; {FOLLOWED}"
        assert [told for told in _told(result) if "operators" in told] == ([text] if large else [])
        exceeded += large
    assert exceeded > 0


def _told(result: FuseResult) -> list[str]:
    return [notice for notice in result.record().notices if "follows TVM" in notice]


JOINED = """g (float[2] a, float[2] b, float[2] c, float[2] d) => (float[8] y)
{ j = Concat<axis = 0>(a, b, c, d) y = Relu(j) }"""


def test_an_operator_that_exceeds_a_limit_alone_stays_alone() -> None:
    result = fused(parse(JOINED), max_args=3)
    assert functions_of(result.model) == []
    assert result.record().notices == ("operators that take more than 3 arguments alone: 1",)
    assert len(functions_of(fused(parse(JOINED), max_args=5).model)) == 1


@pytest.mark.parametrize(("limit", "groups"), [(8, 1), (7, 2)])
def test_lengths_of_run_time_are_arguments(limit: int, groups: int) -> None:
    """A tensor with two lengths and two strides, and a result with two lengths."""
    text = 'g (float["n","m"] x) => (float["n","m"] y) { r = Relu(x) y = Exp(r) }'
    assert len(partition(region_of(text), limits=Limits(max_args=limit)).groups) == groups


def test_limits_keep_partitions_whole() -> None:
    for seed in range(40):
        region = next(regions_of(to_ir(random_network(seed))))
        limits = Limits(max_depth=4, max_args=4)
        found = partition(region, limits=limits)
        check_partition(found)
        assert traffic_of(found).kernels <= traffic_of(unfused(region)).kernels
