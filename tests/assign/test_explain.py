"""Every Transpose is explained by the demands that conflict at it, or is not needed."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from random import Random
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import TensorProto, helper, numpy_helper

from relayout.api import optimize
from relayout.assign.explain import NAMED, WALKED, explanations
from relayout.assign.needed import Possible
from relayout.assign.problem import as_given, copies
from relayout.cli.demo_model import network
from relayout.graph.io.load import load
from relayout.graph.source_line import STACK_KEY, source_line
from relayout.report.explanation import (
    AVOIDABLE,
    INVALID,
    NEEDED,
    NO_CONFLICT,
    NO_DATA,
    PASSES_ON,
    UNDOES,
    Explanation,
)
from tests.assign.random_problems import CHOICES, SHAPES, Shape, random_problem

TO_NCHW, TO_NHWC = [0, 3, 1, 2], [0, 2, 3, 1]
IMAGE = [2, 4, 6, 3]
CHANNELS = "Conv takes its batch from axis 0 and its channels from axis 1"


def node(op_type: str, operands: Sequence[str], result: str, **attributes: Any) -> onnx.NodeProto:
    return helper.make_node(op_type, operands, [result], name=result, **attributes)


def branch(nodes: Sequence[onnx.NodeProto], output: str) -> onnx.GraphProto:
    given = [helper.make_tensor_value_info(output, TensorProto.FLOAT, None)]
    return helper.make_graph(nodes, output, [], given)


def explained(
    nodes: Sequence[onnx.NodeProto],
    outputs: Sequence[str],
    shape: Sequence[int | str] | None = IMAGE,
    budget: float | None = None,
) -> dict[str, Explanation]:
    weights = np.ones((3, 3, 2, 1), np.float32)
    graph = helper.make_graph(
        nodes,
        "sample",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs],
        [numpy_helper.from_array(weights, "w"), numpy_helper.from_array(np.asarray(True), "yes")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    found = explanations(load(model).ir, {}, budget)
    return {str(transpose.name): why for transpose, why in found.items()}


def test_the_border_and_the_operator_after_others_are_named() -> None:
    nodes = [
        node("Transpose", ["x"], "first", perm=TO_NCHW),
        node("Relu", ["first"], "before"),
        node("Conv", ["before", "w"], "conv"),
        node("Relu", ["conv"], "after"),
        node("Transpose", ["after"], "last", perm=TO_NHWC),
    ]
    found = explained(nodes, ["last"], budget=2.0)
    first, last = found["first"], found["last"]
    assert [demand.reason for demand in first.stored_for.named] == [
        "the model's input 'x', given in this order"
    ]
    assert [(d.name, d.op_type, d.reason) for d in first.wanted_by.named] == [
        ("conv", "Conv", CHANNELS)
    ]
    assert [(d.name, d.reason) for d in last.stored_for.named] == [("conv", CHANNELS)]
    assert [demand.reason for demand in last.wanted_by.named] == [
        "the model's output 'last', declared in this order"
    ]
    assert first.note == last.note == NEEDED


def test_another_reader_of_the_tensor_keeps_its_order() -> None:
    nodes = [
        node("Transpose", ["x"], "given", perm=TO_NCHW),
        node("Conv", ["given", "w"], "conv"),
        node("Relu", ["conv"], "relu"),
        node("Transpose", ["relu"], "moved", perm=TO_NHWC),
        node("Flatten", ["moved"], "flat"),
        node("Conv", ["relu", "w"], "second"),
    ]
    moved = explained(nodes, ["flat", "second"])["moved"]
    assert [demand.name for demand in moved.stored_for.named] == ["second", "conv"]
    assert [demand.op_type for demand in moved.wanted_by.named] == ["Flatten"]


def test_an_operator_that_pays_for_another_order_is_named() -> None:
    scale = helper.make_tensor("ones", TensorProto.FLOAT, [4], [1.0] * 4)
    nodes = [
        helper.make_node("Constant", [], ["ones"], value=scale),
        node("Transpose", ["x"], "given", perm=TO_NCHW),
        node("Conv", ["given", "w"], "conv"),
        node("Transpose", ["conv"], "moved", perm=TO_NHWC),
        node("InstanceNormalization", ["moved", "ones", "ones"], "norm"),
        node("Transpose", ["norm"], "back", perm=TO_NCHW),
        node("Conv", ["back", "w"], "second"),
    ]
    moved = explained(nodes, ["second"], budget=2.0)["moved"]
    assert moved.note == ""
    assert [(demand.name, demand.reason) for demand in moved.wanted_by.named] == [
        ("norm", "InstanceNormalization would move more data in the other order")
    ]


def test_transposes_without_a_conflict_are_avoidable() -> None:
    nodes = [
        node("Transpose", ["x"], "there", perm=TO_NCHW),
        node("Relu", ["there"], "relu"),
        node("Transpose", ["relu"], "back", perm=TO_NHWC),
    ]
    notes = {name: why.note for name, why in explained(nodes, ["back"], budget=2.0).items()}
    assert notes == {"there": AVOIDABLE, "back": AVOIDABLE}
    undecided = {name: why.note for name, why in explained(nodes, ["back"]).items()}
    assert undecided == {"there": NO_CONFLICT, "back": NO_CONFLICT}


def test_transposes_of_a_chain_that_do_nothing_are_found() -> None:
    nodes = [
        node("Transpose", ["x"], "there", perm=TO_NCHW),
        node("Transpose", ["there"], "back", perm=TO_NHWC),
        node("Relu", ["back"], "y"),
    ]
    notes = {name: why.note for name, why in explained(nodes, ["y"]).items()}
    assert notes == {"there": PASSES_ON, "back": UNDOES}


@pytest.mark.parametrize(
    ("shape", "note"),
    [([2, 4, 6, 1], NO_DATA), ([2, 1, 1, 3], NO_DATA), ([2, 4, 6, 3], NEEDED), (None, INVALID)],
)
def test_a_transpose_is_judged_by_its_shape(shape: Sequence[int] | None, note: str) -> None:
    perm = {} if shape is None else {"perm": TO_NCHW}
    nodes = [node("Transpose", ["x"], "moved", **perm), node("Flatten", ["moved"], "y")]
    assert explained(nodes, ["y"], shape)["moved"].note == note


def test_only_the_nearest_demands_are_named() -> None:
    convs = [node("Conv", ["moved", "w"], f"conv{index}") for index in range(10)]
    nodes = [node("Transpose", ["x"], "moved", perm=TO_NCHW), *convs]
    wanted = explained(nodes, [conv.name for conv in convs])["moved"].wanted_by
    assert [demand.name for demand in wanted.named] == ["conv0", "conv1", "conv2"][:NAMED]
    assert wanted.more == 10 - NAMED


@pytest.mark.parametrize(("length", "is_found"), [(WALKED - 1, True), (WALKED, False)])
def test_naming_is_bounded_but_finding_what_is_needed_is_not(
    length: int, *, is_found: bool
) -> None:
    names = ["moved", *(f"relu{index}" for index in range(length))]
    chain = [node("Relu", [names[index]], names[index + 1]) for index in range(length)]
    last = node("Conv", [names[-1], "w"], "conv")
    nodes = [node("Transpose", ["x"], "moved", perm=TO_NCHW), *chain, last]
    why = explained(nodes, ["conv"])["moved"]
    assert [demand.name for demand in why.wanted_by.named] == (["conv"] if is_found else [])
    assert why.note == NEEDED


def test_what_bodies_read_is_asked_through_their_borders() -> None:
    inside = [
        node("Relu", ["moved"], "inner"),
        node("Transpose", ["inner"], "turned", perm=TO_NHWC),
        node("Flatten", ["turned"], "flat"),
    ]
    body = branch(inside, "flat")
    other = branch([node("Flatten", ["x"], "flat2")], "flat2")
    nodes = [
        node("Transpose", ["x"], "moved", perm=TO_NCHW),
        node("If", ["yes"], "y", then_branch=body, else_branch=other),
    ]
    found = explained(nodes, ["y"], budget=2.0)
    assert {name: why.note for name, why in found.items()} == {
        "moved": AVOIDABLE,
        "turned": AVOIDABLE,
    }
    assert [d.name for d in found["moved"].stored_for.named] == ["x", "flat2"]
    assert [d.name for d in found["turned"].wanted_by.named] == ["flat"]


def test_what_an_optimised_model_keeps_is_explained_by_both_sides() -> None:
    left = optimize(network(), verify=False).record().left
    assert left
    for record in left:
        assert record.why.note == NEEDED
        assert record.why.stored_for.named
        assert record.why.wanted_by.named


def test_explanations_come_out_the_same_twice() -> None:
    first, second = (explanations(load(network()).ir, {}, 2.0) for _ in range(2))
    assert list(first.values()) == list(second.values())
    assert [n.name for n in first] == [n.name for n in second]


TRACE = """File "/home/me/net.py", line 7, in forward
    x = self.block(x)
  File "/home/me/block.py", line 12, in forward
    return self.conv(x).permute(0, 2, 3, 1)
  File "/v/lib/python3.12/site-packages/torch/nn/modules/conv.py", line 5, in forward
    return f(x)"""
SCRIPT = """/v/lib/python3.9/site-packages/torch/nn/functional.py(12): relu
C:\\me\\block.py(34): forward
/home/me/net.py(56): forward
"""


@pytest.mark.parametrize(
    ("trace", "doc", "line"),
    [
        (TRACE, "", "/home/me/block.py:12"),
        ("", SCRIPT, "C:/me/block.py:34"),
        (TRACE, SCRIPT, "/home/me/block.py:12"),
        ('File "torch/fx/passes/runtime_assert.py", line 24, in insert', "", None),
        ('File "/home/torch/net.py", line 24, in forward', "", "/home/torch/net.py:24"),
        ("", "Reshape for gemm_input", None),
        ("", "", None),
    ],
)
def test_the_source_line_is_the_innermost_of_the_users_own(
    trace: str, doc: str, line: str | None
) -> None:
    exported = ir.Node("", "Relu", [], metadata_props={STACK_KEY: trace}, doc_string=doc)
    assert source_line(exported) == line


def test_a_shuffle_of_channels_is_needed() -> None:
    split = helper.make_tensor("split", TensorProto.INT64, [5], [2, 2, 2, 6, 3])
    merged = helper.make_tensor("merged", TensorProto.INT64, [4], [2, 4, 6, 3])
    nodes = [
        helper.make_node("Constant", [], ["split"], value=split),
        helper.make_node("Constant", [], ["merged"], value=merged),
        node("Reshape", ["x", "split"], "apart"),
        node("Transpose", ["apart"], "shuffled", perm=[0, 2, 1, 3, 4]),
        node("Reshape", ["shuffled", "merged"], "together"),
    ]
    assert explained(nodes, ["together"], budget=2.0)["shuffled"].note == NEEDED


def test_what_costs_more_without_it_is_not_called_needed() -> None:
    """An operator that can run in the other order at a price does not make a Transpose needed."""
    scale = helper.make_tensor("ones", TensorProto.FLOAT, [4], [1.0] * 4)
    nodes = [
        helper.make_node("Constant", [], ["ones"], value=scale),
        node("Transpose", ["x"], "given", perm=TO_NCHW),
        node("Relu", ["given"], "relu"),
        node("Transpose", ["relu"], "moved", perm=TO_NHWC),
        node("InstanceNormalization", ["moved", "ones", "ones"], "norm"),
    ]
    found = explained(nodes, ["relu", "norm"])
    assert NEEDED not in {found["moved"].note}


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_a_needed_transpose_is_in_every_choice(shape: Shape) -> None:
    """Brute force: where a Transpose is called needed, no choice of variants does without one."""
    called = 0
    for seed in range(60):
        problem = random_problem(Random(seed), shape)
        choices = list(product(*(range(len(each.variants)) for each in problem.operators)))
        possible = Possible(problem)
        given = copies(problem, as_given(problem))
        if len(choices) > CHOICES or not any(possible.needs_transpose(v, o) for v, _, o in given):
            continue
        called += 1
        assert all(copies(problem, choice) for choice in choices)
    assert called
