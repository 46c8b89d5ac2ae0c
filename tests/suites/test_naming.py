"""Nodes that survive keep their names, and new Transposes are named after what they serve."""

from __future__ import annotations

import onnx
import pytest

import relayout
from relayout.cli.demo_model import network
from relayout.graph.messages.walk import bodies_of
from relayout.ops.measure import Objective
from tests.objectives import COUNTED
from tests.rewrite.rewriting import parse
from tests.suites.naming import node_names, violations
from tests.suites.optimising import optimised
from tests.suites.random_graphs import random_graph
from tests.suites.test_wrapped_backend import NODE_TESTS, wrapped_case
from tests.suites.wrapping import VARIANTS

SEEDS = range(40)
STRIDE = 29


def named(model: onnx.ModelProto) -> onnx.ModelProto:
    """A copy in which every node has a name of its own."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    nodes = [node for body in bodies_of(copy) for node in body.node]
    for number, node in enumerate(nodes):
        node.name = f"{node.op_type.lower()}_of_{number}"
    return copy


def kept(text: str, **options: str) -> onnx.ModelProto:
    """What is made of a model in ONNX text, without a name that should be another."""
    given = named(parse(text))
    result = relayout.optimize(given, **options).model  # type: ignore[arg-type]
    assert violations(given, result) == []
    return result


def operators(model: onnx.ModelProto) -> list[tuple[str, str]]:
    return [(node.op_type, node.name) for node in model.graph.node]


def transposes(model: onnx.ModelProto) -> list[str]:
    return [node.name for node in model.graph.node if node.op_type == "Transpose"]


@pytest.mark.parametrize("target", ["onnx", "ort", "nhwc"])
def test_the_demo(target: str) -> None:
    given = named(network())
    result = relayout.optimize(given, target=target).model
    assert violations(given, result) == []


@pytest.mark.parametrize("by_factors", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_random_graphs(seed: int, by_factors: bool) -> None:
    given = named(random_graph(seed).model)
    for objective in COUNTED:
        result = optimised(given, objective, by_factors=by_factors).model
        assert violations(given, result) == []


@pytest.mark.parametrize("name", NODE_TESTS[::STRIDE])
def test_wrapped_operators(name: str) -> None:
    for variant in VARIANTS:
        found = wrapped_case(name, variant)
        if found is not None:
            given = named(found.model)
            assert violations(given, optimised(given, Objective.BYTES).model) == []


def test_most_nodes_of_random_graphs_survive() -> None:
    """So that the tests above have something to find."""
    models = [named(random_graph(seed).model) for seed in SEEDS]
    results = [optimised(model, Objective.COUNT).model for model in models]
    pairs = list(zip(models, results, strict=True))
    given = sum(node_names(model).total() for model, _ in pairs)
    same = sum((node_names(one) & node_names(other)).total() for one, other in pairs)
    assert same > given / 2
    assert sum(bool(transposes(result)) for result in results) > len(results) / 4


def test_a_restated_node_keeps_its_name() -> None:
    result = kept(
        """g (float[2,3,4] x) => (float[2,3,4] y) {
            t = Transpose<perm=[0,2,1]>(x)
            s = Softmax<axis=1>(t)
            y = Transpose<perm=[0,2,1]>(s)
        }"""
    )
    assert operators(result) == [("Softmax", "softmax_of_1")]


def test_a_product_that_becomes_another_operator_keeps_its_name() -> None:
    result = kept(
        """g (float[3,5] a, float[3,2] b) => (float[5,2] y) {
            t = Transpose<perm=[1,0]>(a)
            y = MatMul(t, b)
        }"""
    )
    assert operators(result) == [("Gemm", "matmul_of_1")]


def test_the_last_of_several_nodes_has_the_name_of_the_one_they_stand_for() -> None:
    weight = ",".join(["1"] * 6)
    result = kept(
        f"""g (float[N,4,4,3] x) => (float[N,4,4,2] y)
            <float[2,3,1,1] w = {{{weight}}}, float[2] b = {{1, 2}}> {{
            t = Transpose<perm=[0,3,1,2]>(x)
            c = Conv(t, w, b)
            y = Transpose<perm=[0,2,3,1]>(c)
        }}""",
        minimize="bytes",
    )
    assert operators(result)[-1] == ("Add", "conv_of_1")
