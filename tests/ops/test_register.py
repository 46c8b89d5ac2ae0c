"""Operators from outside: once registered they take part in everything."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import TensorProto, helper

import relayout
from relayout.graph.read import NodeView
from relayout.layout.permutation import Permutation
from relayout.layout.transport import Refusal, Transport
from relayout.ops.fusing import fuses_as
from relayout.ops.kind import Kind
from relayout.ops.registry import FACTS, transport
from relayout.ops.rule import OpRule, lead_only
from relayout.rewrite.atoms import SinkMerge
from relayout.rewrite.worklist import rewrite_model

MINE = "com.mine"
LAST = Permutation.of(0, 2, 3, 1)
FIRST = [0, 3, 1, 2]
SHAPE = [2, 3, 4, 5]


@pytest.fixture(autouse=True)
def _only_here() -> Iterator[None]:
    """What a test registers is forgotten after it."""
    known = dict(FACTS)
    yield
    FACTS.clear()
    FACTS.update(known)


def _floats(name: str, *lengths: int) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, lengths)


def _model(
    nodes: list[onnx.NodeProto],
    given: onnx.ValueInfoProto,
    result: onnx.ValueInfoProto,
    *constants: onnx.TensorProto,
) -> onnx.ModelProto:
    graph = helper.make_graph(nodes, "model", [given], [result], constants)
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid(MINE, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def _between_transposes() -> onnx.ModelProto:
    nodes = [
        helper.make_node("Transpose", ["x"], ["a"], perm=FIRST),
        helper.make_node("MyGelu", ["a"], ["b"], domain=MINE),
        helper.make_node("Transpose", ["b"], ["y"], perm=LAST.axes),
    ]
    return _model(nodes, _floats("x", 2, 4, 5, 3), _floats("y", 2, 4, 5, 3))


def _transposes_left() -> int:
    return relayout.optimize(_between_transposes(), verify=False).after.transposes


def _view(op_type: str, *operands: ir.Value, **attributes: int) -> NodeView:
    result = ir.Value(name="y")
    return NodeView(ir.node(op_type, operands, attributes, domain=MINE, outputs=[result]), 1)


def _value(*lengths: int) -> ir.Value:
    return ir.Value(name="x", type=ir.TensorType(ir.DataType.FLOAT), shape=ir.Shape(lengths))


def _constant(array: np.ndarray) -> ir.Value:
    graph = ir.Graph([], [], nodes=[])
    tensor = ir.tensor(array, name="c")
    value = ir.Value(name="c", const_value=tensor, shape=ir.Shape(array.shape))
    graph.register_initializer(value)
    return value


def test_an_unknown_operator_is_a_barrier() -> None:
    assert _transposes_left() == 2


def test_an_operator_like_a_known_one_runs_in_other_orders() -> None:
    relayout.register_operator(MINE, "MyGelu", like="Relu")
    result = relayout.optimize(_between_transposes(), verify=False)
    assert (result.before.transposes, result.after.transposes) == (2, 0)
    left = [(node.domain, node.op_type) for node in result.loaded.ir.graph]
    assert left == [(MINE, "MyGelu")]


def test_an_operator_may_be_like_one_of_a_foreign_domain() -> None:
    relayout.register_operator(MINE, "MyGelu", like=("com.microsoft", "QLinearSigmoid"))
    assert _transposes_left() == 0


def test_an_operator_may_have_facts_of_its_own() -> None:
    facts = relayout.OpFacts(("MyGelu",), OpRule(lead_only), MINE)
    assert isinstance(transport(_view("MyGelu", _value(*SHAPE)), LAST), Refusal)
    relayout.register_operator(facts)
    assert isinstance(transport(_view("MyGelu", _value(*SHAPE)), LAST), Transport)


@pytest.mark.parametrize(("like", "left"), [("", 2), ("Relu", 1)])
def test_a_dead_node_goes_if_its_operator_is_known(like: str, left: int) -> None:
    if like:
        relayout.register_operator(MINE, "MyGelu", like=like)
    nodes = [
        helper.make_node("MyGelu", ["x"], ["nobody"], domain=MINE),
        helper.make_node("Relu", ["x"], ["y"]),
    ]
    model = _model(nodes, _floats("x", *SHAPE), _floats("y", *SHAPE))
    assert relayout.optimize(model, verify=False).after.nodes == left


def test_it_shares_a_kernel_as_the_known_one_does() -> None:
    view = _view("MyGelu", _value(*SHAPE))
    assert fuses_as(view).opaque_for == "unknown_op"
    relayout.register_operator(MINE, "MyGelu", like="Relu")
    assert fuses_as(view).kind is Kind.ELEMENTWISE


@pytest.mark.parametrize(("like", "kernels"), [("", 3), ("Relu", 1)])
def test_it_is_fused_with_its_neighbours(like: str, kernels: int) -> None:
    if like:
        relayout.register_operator(MINE, "MyGelu", like=like)
    nodes = [
        helper.make_node("Exp", ["x"], ["a"]),
        helper.make_node("MyGelu", ["a"], ["b"], domain=MINE),
        helper.make_node("Neg", ["b"], ["y"]),
    ]
    model = _model(nodes, _floats("x", *SHAPE), _floats("y", *SHAPE))
    model.graph.value_info.append(_floats("b", *SHAPE))
    assert len(relayout.fuse(model, verify=False).made.source.graph.node) == kernels


@pytest.mark.parametrize(("like", "layout"), [("", "Tensor"), ("Relu", "NCHW")])
def test_it_carries_layouts_as_the_known_one_does(like: str, layout: str) -> None:
    if like:
        relayout.register_operator(MINE, "MyGelu", like=like)
    weight = onnx.numpy_helper.from_array(np.ones((3, 3, 1, 1), np.float32), "w")
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"]),
        helper.make_node("MyGelu", ["a"], ["y"], domain=MINE),
    ]
    model = _model(nodes, _floats("x", *SHAPE), _floats("y", *SHAPE), weight)
    layouts = {tensor.name: tensor.layout for tensor in relayout.infer_layouts(model).tensors}
    assert layouts["y"] == layout


@pytest.mark.parametrize(("like", "sunk"), [("", 0), ("Relu", 1)])
def test_it_works_on_the_factors_of_merged_axes(like: str, sunk: int) -> None:
    if like:
        relayout.register_operator(MINE, "MyGelu", like=like)
    merged = onnx.numpy_helper.from_array(np.asarray([6, 20]), "merged")
    nodes = [
        helper.make_node("Reshape", ["x", "merged"], ["a"]),
        helper.make_node("MyGelu", ["a"], ["y"], domain=MINE),
    ]
    model = _model(nodes, _floats("x", *SHAPE), _floats("y", 6, 20), merged)
    loaded = ir.from_proto(onnx.shape_inference.infer_shapes(model))
    assert rewrite_model(loaded, [SinkMerge()]).total() == sunk


def test_attributes_mean_what_they_mean_in_the_newest_version() -> None:
    """The version of the operator's own domain has nothing to do with Softmax."""
    relayout.register_operator(MINE, "MySoftmax", like="Softmax")
    answer = transport(_view("MySoftmax", _value(*SHAPE), axis=1), LAST)
    assert isinstance(answer, Transport)
    assert answer.changes.attributes == {"axis": 3}


def test_operands_mean_what_they_mean_in_the_newest_version() -> None:
    """Axes are an operand of a reduction, which no schema states for one that is like it."""
    relayout.register_operator(MINE, "MyMean", like="ReduceMean")
    view = _view("MyMean", _value(*SHAPE), _constant(np.asarray([1])), keepdims=0)
    answer = transport(view, LAST)
    assert isinstance(answer, Transport)
    assert answer.changes.constants[1].tolist() == [3]
    assert answer.outputs == (Permutation.identity(3),)


def test_it_is_never_stated_by_other_operators() -> None:
    """A pointwise Conv is a MatMul in some orders; one that is like it may compute more."""
    relayout.register_operator(MINE, "MyConv", like="Conv")
    view = _view("MyConv", _value(*SHAPE), _constant(np.ones((3, 3, 1, 1), np.float32)))
    assert isinstance(transport(view, LAST), Refusal)
    assert isinstance(transport(view, Permutation.of(0, 1, 3, 2)), Transport)


def test_its_values_are_never_computed() -> None:
    relayout.register_operator(MINE, "MyAdd", like="Add")
    facts = FACTS[MINE, "MyAdd"]
    assert facts.lengths.entries is None
    assert facts.numbers.evaluation is None


def test_what_is_known_already_is_refused() -> None:
    relayout.register_operator(MINE, "MyGelu", like="Relu")
    with pytest.raises(
        relayout.RelayoutError, match=r"operator com\.mine\.MyGelu is known already"
    ):
        relayout.register_operator(MINE, "MyGelu", like="Relu")
    for domain in ("", "ai.onnx"):
        with pytest.raises(relayout.RelayoutError, match="operator Conv is known already"):
            relayout.register_operator(relayout.OpFacts(("MyThing", "Conv"), domain=domain))
    assert ("", "MyThing") not in FACTS


def test_nothing_is_like_an_unknown_operator() -> None:
    with pytest.raises(relayout.RelayoutError, match=r"no operator com\.mine\.Thing is known"):
        relayout.register_operator(MINE, "MyGelu", like=(MINE, "Thing"))


PLUGIN = """
from relayout import OpFacts
from relayout.ops.elementwise import elementwise

NAME = "com.mine"
ONE = elementwise("One", domain="com.mine")
SEVERAL = [elementwise("Two", domain="com.mine"), OpFacts(("Three",), domain="com.mine")]

def given():
    return SEVERAL

def failing():
    raise ValueError("not today")
"""
ASKED = """
import onnx_ir as ir, sys
from relayout.ops.registry import UNKNOWN, facts_of

facts_of(ir.Node("", "Relu", []))
print("my_plugin" in sys.modules, end=" ")
names = ("One", "Two", "Three", "Four")
print(*(facts_of(ir.Node("com.mine", name, [])) is not UNKNOWN for name in names))
"""


def _run_with_plugin(folder: Path, points: str) -> str:
    """What a new process prints that finds a package with these entry points."""
    (folder / "my_plugin.py").write_text(PLUGIN)
    information = folder / "my_plugin-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: my-plugin\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text(f"[relayout.ops]\n{points}\n")
    path = os.pathsep.join([str(folder), *filter(None, sys.path)])
    done = subprocess.run(
        [sys.executable, "-c", ASKED],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout + done.stderr


@pytest.mark.parametrize("several", ["my_plugin:SEVERAL", "my_plugin:given"])
def test_entry_points_are_loaded_when_an_unknown_operator_is_met(
    several: str, tmp_path: Path
) -> None:
    printed = _run_with_plugin(tmp_path, f"one = my_plugin:ONE\nseveral = {several}")
    assert printed.split() == ["False", "True", "True", "True", "False"]


@pytest.mark.parametrize(
    ("place", "reason"),
    [
        ("my_plugin:ABSENT", "cannot be loaded"),
        ("my_plugin:NAME", "gives no OpFacts"),
        ("my_plugin:failing", "cannot give its operators: ValueError: not today"),
    ],
)
def test_an_entry_point_that_gives_no_facts_is_refused(
    place: str, reason: str, tmp_path: Path
) -> None:
    printed = _run_with_plugin(tmp_path, f"mine = {place}")
    assert f"RelayoutError: the plugin relayout.ops 'mine' {reason}" in printed
