"""Random graphs and random single edits: the field's verdict against numbers in float64."""

from __future__ import annotations

import copy
from typing import Any, cast

import hypothesis.strategies as st
import numpy as np
import onnx
from hypothesis import given, settings
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

from relayout.verify.field.run import field_run

SIDE = 3
UNARY = ("Relu", "Tanh", "Neg", "Identity", "Transpose", "Softmax", "CumSum", "Flip")
BINARY = ("Add", "Sub", "Mul", "MatMul", "Max")
PERMS = ([0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0])
# The verdicts of these are those of numbers, both ways; functions as hashes know fewer identities.
LINEAR = frozenset(("Neg", "Identity", "Transpose", "CumSum", "Slice", "Add", "Sub", "MatMul"))


@st.composite
def _node(draw: st.DrawFn, index: int) -> onnx.NodeProto:
    """A node that reads any value before it; all values are cubes."""
    names = [f"v{i}" for i in range(index)]
    op_type = draw(st.sampled_from((*UNARY, *BINARY)))
    count = 2 if op_type in BINARY else 1
    operands = [draw(st.sampled_from(names)) for _ in range(count)]
    return _made(op_type, operands, index, draw(st.integers(0, 5)))


def _made(op_type: str, operands: list[str], index: int, choice: int) -> onnx.NodeProto:
    output = [f"v{index}"]
    if op_type == "Transpose":
        return helper.make_node(op_type, operands, output, perm=PERMS[choice])
    if op_type == "Softmax":
        return helper.make_node(op_type, operands, output, axis=choice % 3)
    if op_type == "CumSum":
        return helper.make_node(op_type, [*operands, f"axis{choice % 3}"], output)
    if op_type == "Flip":
        axis = f"axes{choice % 3}"
        return helper.make_node("Slice", [*operands, "last", "first", axis, "back"], output)
    return helper.make_node(op_type, operands, output)


def _model(nodes: list[onnx.NodeProto]) -> onnx.ModelProto:
    cube = [SIDE] * 3
    inputs = [helper.make_tensor_value_info(f"v{i}", TensorProto.DOUBLE, cube) for i in range(2)]
    last = helper.make_tensor_value_info(nodes[-1].output[0], TensorProto.DOUBLE, cube)
    constants = [
        *(_integers(f"axis{i}", i) for i in range(3)),
        *(_integers(f"axes{i}", [i]) for i in range(3)),
        *(_integers(name, [n]) for name, n in (("last", -1), ("first", -9), ("back", -1))),
    ]
    graph = helper.make_graph(nodes, "g", inputs, [last], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def _integers(name: str, numbers: Any) -> onnx.TensorProto:
    return onnx.numpy_helper.from_array(np.array(numbers, np.int64), name)


@st.composite
def pairs(draw: st.DrawFn) -> tuple[onnx.ModelProto, onnx.ModelProto]:
    """A graph, and the same one with one node made anew."""
    count = draw(st.integers(1, 6))
    nodes = [draw(_node(index)) for index in range(2, 2 + count)]
    edited = copy.deepcopy(nodes)
    place = draw(st.integers(0, count - 1))
    edited[place] = draw(_node(place + 2))
    return _model(nodes), _model(edited)


def _numbers(model: onnx.ModelProto, seed: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    rng = np.random.default_rng(seed)
    feeds = {f"v{i}": rng.uniform(-1, 1, (SIDE, SIDE, SIDE)) for i in range(2)}
    (result,) = cast("list[Any]", ReferenceEvaluator(model).run(None, feeds))
    return np.asarray(result)


def _are_equal(pair: tuple[onnx.ModelProto, onnx.ModelProto]) -> bool:
    results = [[_numbers(model, seed) for seed in range(3)] for model in pair]
    return all(
        np.allclose(left, right, rtol=1e-9, atol=1e-12)
        for left, right in zip(*results, strict=True)
    )


@settings(max_examples=300, deadline=None, derandomize=True)
@given(pairs())
def test_what_the_field_calls_equal_is_equal(
    pair: tuple[onnx.ModelProto, onnx.ModelProto],
) -> None:
    status = field_run(*pair, binding={}, seed=3).status
    assert status in ("equal", "differs")
    if status == "equal":
        assert _are_equal(pair)
    elif _is_linear(pair):
        assert not _are_equal(pair)


def _is_linear(pair: tuple[onnx.ModelProto, onnx.ModelProto]) -> bool:
    return all(node.op_type in LINEAR for model in pair for node in model.graph.node)


def test_edits_are_of_both_kinds() -> None:
    """The test above would be empty if all pairs were equal, or none."""
    node = helper.make_node
    turned = _model(
        [node("Transpose", ["v0"], ["v2"], perm=[0, 2, 1]), node("Add", ["v2", "v1"], ["v3"])]
    )
    other = _model(
        [node("Transpose", ["v0"], ["v2"], perm=[1, 0, 2]), node("Add", ["v1", "v2"], ["v3"])]
    )
    same = _model(
        [node("Transpose", ["v0"], ["v2"], perm=[0, 2, 1]), node("Add", ["v1", "v2"], ["v3"])]
    )
    assert (_are_equal((turned, same)), _are_equal((turned, other))) == (True, False)
    assert field_run(turned, same, binding={}, seed=0).status == "equal"
    assert field_run(turned, other, binding={}, seed=0).status == "differs"
