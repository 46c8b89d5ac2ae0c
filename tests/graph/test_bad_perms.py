"""Transposes that cannot be what they state are refused with one line that names them."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

from relayout.cli import main
from relayout.graph.io.load import load
from relayout.graph.io.save import to_proto
from tests.graph.makers import call, function, model, node, value, write
from tests.graph.refusal import refusal

OPSETS = [("", 18), ("local", 1)]
FLAG = helper.make_tensor_value_info("c", TensorProto.BOOL, [])


@pytest.mark.parametrize(
    ("perm", "reason"),
    [
        ([0, 0], "no permutation"),
        ([0, 2], "no permutation"),
        ([-1, 0], "no permutation"),
        ([0], "'x' has 2 axes"),
        ([0, 2, 1], "'x' has 2 axes"),
    ],
)
def test_a_perm_that_is_not_valid(perm: list[int], reason: str) -> None:
    line = refusal(model([node("Transpose", "x", "y", perm=perm)]))
    assert f"'Transpose' node 'Transpose_y' has the perm {perm}" in line
    assert reason in line


def test_a_rank_that_is_inferred() -> None:
    nodes = [node("Transpose", "x", "a", perm=[1, 0]), node("Transpose", "a", "y", perm=[0, 2, 1])]
    assert "'a' has 2 axes" in refusal(model(nodes))


def test_a_vector_has_one_axis() -> None:
    given = model([node("Transpose", "x", "y", perm=[1, 0])], inputs=[value("x", [4])])
    assert "'x' has 1 axis" in refusal(given)


def _branch(name: str, perm: list[int], operand: str = "x") -> onnx.GraphProto:
    return helper.make_graph([node("Transpose", operand, name, perm=perm)], name, [], [value(name)])


def test_a_branch_that_reads_an_outer_value() -> None:
    branches = {"then_branch": _branch("t", [1, 0]), "else_branch": _branch("e", [0, 2, 1])}
    given = model([node("If", "c", "y", **branches)], inputs=[value("x", [2, 3]), FLAG])
    assert "'Transpose_e' has the perm [0, 2, 1], but 'x' has 2 axes" in refusal(given)


def _iterating(op_type: str, perm: list[int]) -> onnx.ModelProto:
    step = node("Transpose", "s", "t", perm=perm)
    if op_type == "Scan":
        body = helper.make_graph([step], "body", [value("s", [3, 4])], [value("t")])
        nodes = [node("Scan", "x", "y", body=body, num_scan_inputs=1)]
        return model(nodes, inputs=[value("x", [2, 3, 4])])
    numbered = helper.make_tensor_value_info("i", TensorProto.INT64, [])
    going = helper.make_tensor_value_info("going", TensorProto.BOOL, [])
    on = helper.make_tensor_value_info("on", TensorProto.BOOL, [])
    nodes = [node("Identity", "going", "on"), step]
    body = helper.make_graph(nodes, "body", [numbered, going, value("s", [3, 3])], [on, value("t")])
    count = helper.make_tensor("n", TensorProto.INT64, [], [2])
    return model(
        [node("Loop", "n c x", "y", body=body)],
        inputs=[value("x", [3, 3]), FLAG],
        initializers=[count],
    )


@pytest.mark.parametrize("op_type", ["Loop", "Scan"])
def test_a_body_that_is_repeated(op_type: str) -> None:
    assert load(_iterating(op_type, [1, 0])).frozen is None
    assert "no permutation" in refusal(_iterating(op_type, [1, 1]))
    assert "'s' has 2 axes" in refusal(_iterating(op_type, [0, 2, 1]))


@pytest.mark.parametrize("is_called", [False, True])
def test_a_function_with_no_permutation(is_called: bool) -> None:
    bad = function("f", [node("Transpose", "x", "y", perm=[2, 0])])
    first = call("f", "x", "y") if is_called else node("Relu", "x", "y")
    assert "no permutation" in refusal(model([first], opsets=OPSETS, functions=[bad]))


def test_a_function_is_checked_for_the_ranks_it_is_called_with() -> None:
    inner = function("f", [node("Transpose", "x", "y", perm=[0, 2, 1])])
    outer = function("g", [call("f", "x", "y")])
    functions = [inner, outer]
    fits = model(
        [call("g", "x", "y")], inputs=[value("x", [2, 3, 4])], opsets=OPSETS, functions=functions
    )
    assert load(fits).frozen is None
    bad = model([call("g", "x", "y")], opsets=OPSETS, functions=functions)
    assert "'x' has 2 axes" in refusal(bad)


def test_ranks_that_only_the_run_tells_are_left_alone() -> None:
    given = model([node("Transpose", "x", "y", perm=[0, 2, 1])], inputs=[value("x")])
    assert to_proto(load(given)) == given


def test_a_record_that_may_be_stale_contradicts_nothing() -> None:
    odd = helper.make_node("Odd", ["x"], ["a"], domain="local")
    given = model([odd, node("Transpose", "a", "y", perm=[0, 2, 1])], opsets=OPSETS)
    given.graph.value_info.append(value("a", [2, 3]))
    assert to_proto(load(given)) == given


@pytest.mark.parametrize(
    "command",
    ["optimize", "check --max-transposes 4", "inspect", "compare", "fuse", "compile -o m.py"],
)
def test_every_command_refuses_it(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = model([node("Transpose", "x", "y", perm=[0, 2, 1])])
    path = write(given, tmp_path / "m.onnx")
    name, *options = command.replace("m.py", str(tmp_path / "m.py")).split()
    assert main([name, str(path), *options]) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert "'Transpose_y' has the perm [0, 2, 1], but 'x' has 2 axes" in line
    assert [file.name for file in tmp_path.iterdir()] == ["m.onnx"]
