"""Graphs that cannot run, and models that are only copied."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

from relayout.errors import RelayoutError
from relayout.graph.io.load import load
from relayout.graph.io.save import save, to_proto
from tests.graph.makers import (
    FLOAT,
    call,
    doubling_functions,
    function,
    model,
    node,
    value,
    with_weight,
    write,
)
from tests.graph.refusal import refusal

pytestmark = pytest.mark.usefixtures("no_hang")


def test_functions_that_call_themselves() -> None:
    opsets = [("", 18), ("local", 1)]
    one = function("f", [call("g", "x", "y")])
    other = function("g", [call("f", "x", "y")])
    given = model([call("f", "x", "y")], opsets=opsets, functions=[one, other])
    assert "calls itself" in refusal(given)


def test_a_function_defined_twice() -> None:
    twice = [function("f", [node("Relu", "x", "y")])] * 2
    given = model([call("f", "x", "y")], opsets=[("", 18), ("local", 1)], functions=twice)
    assert "'f' is defined twice" in refusal(given)


def test_doubling_functions_do_not_hang() -> None:
    given = doubling_functions(30)
    loaded = load(given)
    assert any("functions expand to" in notice for notice in loaded.notices)
    assert to_proto(loaded) == given


def test_few_functions_are_expanded_by_inference() -> None:
    loaded = load(doubling_functions(3))
    assert loaded.notices == []
    assert loaded.ir.graph.outputs[0].shape == [2, 3]


def weight(name: str) -> onnx.TensorProto:
    return helper.make_tensor(name, FLOAT, [1], [1.0])


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (
            model([node("Relu", "x", "y")], inputs=[value("x"), value("x")]),
            "input 'x' twice",
        ),
        (model([node("Relu", "x", "y"), node("Abs", "x", "y")]), "writes 'y'"),
        (model([node("Split", "x", "y y")]), "writes 'y'"),
        (model([node("Relu", "x", "x"), node("Relu", "x", "y")]), "writes 'x'"),
        (model([node("Add", "w x", "w")], initializers=[weight("w")]), "writes 'w'"),
        (
            model([node("Add", "x b", "a"), node("Add", "a x", "b")], outputs=[value("b")]),
            "depends on its own result",
        ),
        (
            model([node("Add", "x y", "y")]),
            "depends on its own result",
        ),
        (model([node("Add", "x nowhere", "y")]), "reads 'nowhere', which nothing defines"),
        (model([node("Relu", "x", "a")]), "output of graph 'main' reads 'y'"),
        (
            model([node("Relu", "x", "y")], opsets=[("", 18), ("ai.onnx", 17)]),
            "versions 18 and 17",
        ),
        (model([node("Relu", "x", "y")], opsets=[("custom", 1)]), "imports no version"),
    ],
)
def test_graphs_that_cannot_run(given: onnx.ModelProto, reason: str) -> None:
    assert reason in refusal(given)


def test_names_are_printed_escaped() -> None:
    line = refusal(model([node("Relu", "x", "y"), node("Relu", "evil\x1b[31m", "z")]))
    assert "\x1b" not in line
    assert r"\x1b[31m" in line


def test_a_circle_through_a_body() -> None:
    body = helper.make_graph([node("Relu", "y", "b")], "body", [], [value("b")])
    branch = node("If", "c", "y", then_branch=body, else_branch=body)
    condition = helper.make_tensor_value_info("c", TensorProto.BOOL, [])
    assert "depends on its own" in refusal(model([branch], inputs=[value("x"), condition]))


def test_a_name_missing_inside_a_body() -> None:
    body = helper.make_graph([node("Relu", "nowhere", "b")], "body", [], [value("b")])
    branch = node("If", "c", "y", then_branch=body, else_branch=body)
    condition = helper.make_tensor_value_info("c", TensorProto.BOOL, [])
    assert "'nowhere'" in refusal(model([branch], inputs=[value("x"), condition]))


def test_nodes_out_of_order_are_sorted_and_reported() -> None:
    body = helper.make_graph(
        [node("Relu", "p", "b"), node("Abs", "a", "p")], "body", [], [value("b", [2])]
    )
    nodes = [
        node("If", "c", "y", then_branch=body, else_branch=body),
        node("Neg", "x", "unread"),
        node("Relu", "x", "a"),
    ]
    condition = helper.make_tensor_value_info("c", TensorProto.BOOL, [])
    given = model(nodes, inputs=[value("x", [2]), condition], outputs=[value("y", [2])])
    before = given.SerializeToString()
    loaded = load(given)
    assert "sorted" in loaded.notices[0]
    assert given.SerializeToString() == before
    result = to_proto(loaded)
    assert [item.op_type for item in result.graph.node] == ["Neg", "Relu", "If"]
    inner = result.graph.node[2].attribute[0].g
    assert [item.op_type for item in inner.node] == ["Abs", "Relu"]
    onnx.checker.check_model(result, full_check=True)


def test_a_perm_that_is_no_list_of_integers_is_left_alone() -> None:
    given = model([node("Transpose", "x", "y", perm=1.5)])
    assert to_proto(load(given)) == given


def test_a_repeated_attribute_is_left_alone_and_reads_as_unknown() -> None:
    given = model([node("Transpose", "x", "y", perm=[1, 0])])
    given.graph.node[0].attribute.append(helper.make_attribute("perm", [0, 1]))
    loaded = load(given)
    assert loaded.ir.graph.node(0).attributes["perm"].value is None
    assert to_proto(loaded) == given


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (model([node("Relu", "x", "y")], opsets=[("", 999)]), "opset version 999"),
        (model([node("Relu", "x", "y")], opsets=[("", 6)]), "opset version 6"),
        (model([node("Relu", "x", "y")], ir_version=999), "IR version 999"),
        (model([node("Relu", "x", "y")], ir_version=2), "IR version 2"),
    ],
)
def test_unknown_versions_are_copied_through(
    tmp_path: Path, given: onnx.ModelProto, reason: str
) -> None:
    path = write(given, tmp_path / "m.onnx")
    loaded = load(path)
    assert reason in (loaded.frozen or "")
    with pytest.raises(RelayoutError, match="cannot be changed"):
        assert loaded.ir
    save(loaded, tmp_path / "out.onnx", changed=True)
    assert (tmp_path / "out.onnx").read_bytes() == path.read_bytes()


def test_unknown_operators_are_opaque() -> None:
    opsets = [("", 18), ("who.knows", 4)]
    odd = helper.make_node("Odd", ["x"], ["a"], domain="who.knows", secret=3)
    given = model([odd, node("Relu", "a", "y")], opsets=opsets)
    loaded = load(given)
    assert loaded.frozen is None
    assert to_proto(loaded) == given


def test_a_name_that_is_not_text_is_copied_through(tmp_path: Path) -> None:
    given = model([node("Relu", "x", "QQQQ"), node("Relu", "QQQQ", "y")])
    path = tmp_path / "m.onnx"
    path.write_bytes(given.SerializeToString().replace(b"QQQQ", b"\xff\xfeQQ"))
    loaded = load(path)
    assert "not UTF-8" in (loaded.frozen or "")
    save(loaded, tmp_path / "out.onnx", changed=True)
    assert (tmp_path / "out.onnx").read_bytes() == path.read_bytes()


def test_training_that_knows_inner_values_is_copied_through() -> None:
    given = with_weight(helper.make_tensor("w", FLOAT, [1], [1.0]))
    given.training_info.add().update_binding.add(key="w", value="new_w")
    assert "'w'" in (load(given).frozen or "")


def test_a_body_that_gives_back_an_outer_value_is_copied_through() -> None:
    body = helper.make_graph([], "body", [], [value("x")])
    branch = node("If", "c", "y", then_branch=body, else_branch=body)
    condition = helper.make_tensor_value_info("c", TensorProto.BOOL, [])
    loaded = load(model([branch], inputs=[value("x", [2]), condition]))
    assert "outer value 'x'" in (loaded.frozen or "")
