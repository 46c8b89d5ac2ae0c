"""Where fusing stops, functions that stay apart, and functions for single operators."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from relayout.api import fuse
from relayout.cli import main
from relayout.errors import RelayoutError
from relayout.fusion.partition import MODES
from relayout.optimizer.fuse import explain, listing
from relayout.optimizer.grouping import STOP_KEY, GroupingOptions
from tests.fusion.random_networks import random_network
from tests.fusion.running import assert_runs_alike
from tests.fusion.written import functions_of, fused, groups_of, operators_in
from tests.rewrite.rewriting import parse

CHAIN = """g (float[10] x) => (float[10] y) <float c = {1.0}>
{ a = Add(x, c) b = Exp(a) y = Neg(b) }"""
KEPT = """<ir_version: 10, opset_import: ["" : 21, "mine" : 1]>
g (float[10] x) => (float[10] y) { a = Relu(x) b = mine.outer(a) y = Exp(b) }
<domain: "mine", opset_import: ["" : 21]>
inner (x) => (y) { a = Abs(x) y = Neg(a) }
<domain: "mine", opset_import: ["" : 21, "mine" : 1]>
outer (x) => (y) { a = Abs(x) b = Sqrt(a) y = mine.inner(b) }"""


@pytest.mark.parametrize("mode", MODES)
def test_fusing_stops_after_a_node(mode: str) -> None:
    given = parse(CHAIN)
    assert groups_of(fused(given, mode=mode).model) == ["Add Exp Neg"]
    result = fused(given, mode=mode, stop=["a"])
    assert groups_of(result.model) == ["Exp Neg"]
    assert_runs_alike(given, result.model)
    assert groups_of(fused(given, mode=mode, stop=["b"]).model) == ["Add Exp"]
    assert groups_of(fused(given, mode=mode, stop=["a", "b"]).model) == []


@pytest.mark.parametrize("mode", MODES)
def test_the_metadata_of_a_node_stops_fusing(mode: str) -> None:
    given = parse(CHAIN)
    given.graph.node[0].metadata_props.add(key=STOP_KEY, value="1")
    assert groups_of(fused(given, mode=mode).model) == ["Exp Neg"]
    given.graph.node[0].metadata_props[0].value = "0"
    assert groups_of(fused(given, mode=mode).model) == ["Add Exp Neg"]


@pytest.mark.parametrize("mode", MODES)
def test_nothing_that_reads_a_stop_shares_its_kernel(mode: str) -> None:
    stopped = 0
    for seed in range(40):
        given = random_network(seed)
        names = [node.output[0] for node in given.graph.node][::3]
        result = fused(given, mode=mode, stop=names)
        for function in functions_of(result.model):
            for node in function.node:
                assert not set(node.input) & set(names) - set(function.input)
            stopped += bool(set(function.output) & set(names))
    assert stopped > 30


def test_a_stop_is_the_reason() -> None:
    for mode in MODES:
        (record,) = explain(parse(CHAIN), "a", GroupingOptions(mode, stop=["a"]))
        assert [(each.code, each.reason) for each in record.refusals] == [
            ("stop", "fusing stops at Add a, as was asked")
        ]


def test_names_that_the_model_does_not_have() -> None:
    with pytest.raises(RelayoutError, match="no node 'z'"):
        fuse(parse(CHAIN), stop=["z"], verify=False)
    with pytest.raises(RelayoutError, match="no function 'z'"):
        fuse(parse(CHAIN), keep_function=["z"], verify=False)
    with pytest.raises(RelayoutError, match="as a list, not as the string 'ab'"):
        fuse(parse(CHAIN), stop="ab", verify=False)


@pytest.mark.parametrize("mode", MODES)
def test_a_function_that_is_kept_apart_is_one_kernel(mode: str) -> None:
    given = parse(KEPT)
    open_one = fused(given, mode=mode)
    assert groups_of(open_one.model) == ["Abs Neg", "Abs Sqrt"]
    for name in ("outer", "mine.outer"):
        result = fused(given, mode=mode, keep_function=[name])
        assert groups_of(result.model) == []
        assert result.figures[mode].kernels == 3
        assert_runs_alike(given, result.model)
    assert groups_of(fused(given, mode=mode, keep_function=["inner"]).model) == ["Abs Sqrt"]


CALLED = """<ir_version: 10, opset_import: ["" : 21, "com.microsoft" : 1]>
g (float[4,4] x, float[4,4] w) => (float[4,4] y) { b = com.microsoft.FusedMatMul(x, w) y = Exp(b) }
<domain: "com.microsoft", opset_import: ["" : 21]>
FusedMatMul (x, w) => (y) { y = MatMul(x, w) }"""


@pytest.mark.parametrize("mode", MODES)
def test_a_known_operator_that_is_a_function_too_can_be_kept_apart(mode: str) -> None:
    given = parse(CALLED)
    assert groups_of(fused(given, mode=mode).model) == ["FusedMatMul Exp"]
    result = fused(given, mode=mode, keep_function=["FusedMatMul"])
    assert groups_of(result.model) == []
    codes = {refusal.code for refusal in result.record().refusals}
    assert "apart" in codes


@pytest.mark.parametrize("mode", MODES)
def test_every_operator_can_be_wrapped(mode: str) -> None:
    for seed in range(15):
        given = random_network(seed)
        result = fused(given, mode=mode, wrap_all=True)
        assert {node.domain for node in result.model.graph.node} == {"relayout.fused"}
        plain = fused(given, mode=mode)
        assert plain.figures == result.figures
        assert groups_of(plain.model) == [
            " ".join(operators_in(each))
            for each in sorted(functions_of(result.model), key=lambda f: " ".join(operators_in(f)))
            if len(operators_in(each)) > 1
        ]
        assert_runs_alike(given, result.model)


CONTROL = """g (float[10] x, bool k) => (float[10] z) {
  y = Relu(x)
  z = If(k) <then_branch = t () => (float[10] a) { a = Exp(y) },
             else_branch = e () => (float[10] b) { b = Neg(y) }>
}"""


def test_what_has_bodies_is_not_wrapped() -> None:
    given = parse(CONTROL)
    result = fused(given, wrap_all=True)
    assert groups_of(result.model) == ["Exp", "Neg", "Relu"]
    assert [node.op_type for node in result.model.graph.node][-1] == "If"
    assert_runs_alike(given, result.model)


def test_calls_are_not_wrapped() -> None:
    assert "outer" not in " ".join(groups_of(fused(parse(KEPT), wrap_all=True).model))


def test_the_command_line_takes_all_of_it(tmp_path: Path) -> None:
    file, made = tmp_path / "in.onnx", tmp_path / "out.onnx"
    onnx.save(parse(KEPT), file)
    options = ["--stop", "a", "--keep-function", "outer", "--wrap-all", "--no-verify"]
    assert main(["fuse", str(file), "-o", str(made), *options]) == 0
    assert groups_of(onnx.load(made)) == ["Exp", "Relu"]


def test_a_listing_takes_stops() -> None:
    first = listing(parse(CHAIN), GroupingOptions(stop=["a"])).splitlines()[2]
    assert "Add" in first
    assert " extern " in first
