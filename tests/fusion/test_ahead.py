"""What is computed from constants and lengths alone belongs to no kernel, and stays in the file."""

from __future__ import annotations

import onnx
import pytest

from relayout.fusion.ahead import Ahead
from relayout.fusion.partition import MODES
from relayout.graph.region import regions_of
from tests.fusion.running import assert_runs_alike
from tests.fusion.written import fused, groups_of
from tests.rewrite.rewriting import parse, to_ir

BATCH_KEPT = """g (float{shape} x) => (float[N, M] y)
<int64 zero = {{0}}, int64[1] axis = {{0}}, int64[1] rest = {{-1}}>
{{
  r = Relu(x) s = Shape(r) n = Gather(s, zero) u = Unsqueeze(n, axis)
  t = Concat<axis = 0>(u, rest) m = Reshape(r, t) y = Exp(m)
}}"""


def ahead(text: str) -> set[str]:
    """The results of what runs ahead."""
    nodes = Ahead.of(regions_of(to_ir(parse(text)))).nodes
    return {value.name or "" for node in nodes for value in node.outputs}


def known(text: str) -> set[str]:
    return {value.name or "" for value in Ahead.of(regions_of(to_ir(parse(text)))).known}


@pytest.mark.parametrize("mode", MODES)
def test_arithmetic_of_shapes_is_no_kernel(mode: str) -> None:
    given = parse(BATCH_KEPT.format(shape="[2,3,4]"))
    result = fused(given, mode=mode)
    assert {way: each.kernels for way, each in result.figures.items()}[mode] == 1
    assert_runs_alike(given, result.model)


def test_arithmetic_between_nodes_of_a_group_goes_with_them() -> None:
    (group,) = groups_of(fused(parse(BATCH_KEPT.format(shape="[2,3,4]"))).model)
    assert group == "Relu Shape Gather Unsqueeze Concat Reshape Exp"


def test_what_depends_on_lengths_of_run_time_is_not_known() -> None:
    text = BATCH_KEPT.format(shape='["N",3,4]')
    assert ahead(text) == {"s", "n", "u", "t"}
    assert known(text) == set()
    assert known(BATCH_KEPT.format(shape="[2,3,4]")) == {"s", "n", "u", "t"}


@pytest.mark.parametrize("mode", MODES)
def test_lengths_of_run_time_are_no_kernel_either(mode: str) -> None:
    given = parse(BATCH_KEPT.format(shape='["N",3,4]'))
    result = fused(given, mode=mode)
    assert result.figures["unfused"].kernels == 2, "Reshape moves nothing"
    assert_runs_alike(given, result.model)


WEIGHTS = """g (float[2,3] x) => (float[2,4] y) <float[4,3] w, float[4] b> {
  t = Transpose(w) e = Exp(b) m = MatMul(x, t) y = Add(m, e)
}"""


def with_weights() -> onnx.ModelProto:
    given = parse(WEIGHTS)
    for name, shape in (("w", (4, 3)), ("b", (4,))):
        size = 12 if name == "w" else 4
        given.graph.initializer.append(
            onnx.helper.make_tensor(name, onnx.TensorProto.FLOAT, shape, [0.5] * size)
        )
    return given


@pytest.mark.parametrize("mode", MODES)
def test_what_is_made_of_weights_alone_is_no_kernel(mode: str) -> None:
    given = with_weights()
    result = fused(given, mode=mode)
    assert groups_of(result.model) == ["MatMul Add"]
    assert result.figures["unfused"].kernels == 2
    assert_runs_alike(given, result.model)


@pytest.mark.parametrize(
    ("graph", "nodes"),
    [
        ("g () => (float[3] y) { y = RandomNormal<shape = [3]>() }", set()),
        ("g () => (float[2,3] y) <int64[2] s = {2,3}> { y = ConstantOfShape(s) }", {"y"}),
        (
            "g () => (float[2048,2048] y) <int64[2] s = {2048,2048}> { y = ConstantOfShape(s) }",
            set(),
        ),
        ("g (float[2] x) => (int64 y) { y = Size(x) }", {"y"}),
        ("g (float[2] x) => (float[2] y) { y = Relu(x) }", set()),
        ("g () => (float[2] y) <float[2] c = {1.0,2.0}> { y = Relu(c) }", {"y"}),
        ("g (float[2] c) => (float[2] y) <float[2] c = {1.0,2.0}> { y = Relu(c) }", set()),
    ],
    ids=["random", "small", "large", "size", "data", "constant", "default"],
)
def test_what_runs_ahead(graph: str, nodes: set[str]) -> None:
    assert ahead(graph) == nodes


CIRCLE = """g (float[1024,1024] x) => (float[1024,1024] y, float[1024,1024] f) {
  a = Relu(x) s = Shape(a) f = ConstantOfShape(s) t = Shape(f) m = Reshape(a, t) y = Exp(m)
}"""


@pytest.mark.parametrize("mode", MODES)
def test_groups_do_not_wait_for_each_other_through_shapes(mode: str) -> None:
    """Relu and Exp alone are no kernel, for the file fills f for t in between."""
    given = parse(CIRCLE)
    result = fused(given, mode=mode)
    assert all(
        ("Relu" in group) == ("ConstantOfShape" in group) for group in groups_of(result.model)
    )
    assert_runs_alike(given, result.model)


SHARED = """g (float[2,3] x) => (float[2,3] y, int64[2] t) <int64[2] c = {1,1}> {
  a = Relu(x) s = Shape(a) t = Mul(s, c) m = Reshape(a, t) y = Exp(m)
}"""


@pytest.mark.parametrize("mode", MODES)
def test_arithmetic_that_others_read_stays_where_it_is(mode: str) -> None:
    """The group has a copy of it, and hands over what the given one reads."""
    given = parse(SHARED)
    result = fused(given, mode=mode)
    assert groups_of(result.model) == ["Relu Shape Mul Reshape Exp"]
    assert [node.op_type for node in result.model.graph.node][-2:] == ["Shape", "Mul"]
    assert list(result.model.functions[0].output) == ["a", "y"]
    assert_runs_alike(given, result.model)
