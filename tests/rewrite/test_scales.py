"""Factors after convolutions and products go into their weights; biases are joined."""

from __future__ import annotations

from collections import Counter

import numpy as np
import onnx
import onnx_ir as ir
import pytest

from relayout.rewrite.biases import BiasApart, JoinBiases
from relayout.rewrite.dead import remove_dead
from relayout.rewrite.scales import FoldBatchNormalization, FoldBias, FoldScale
from relayout.rewrite.worklist import rewrite_model
from tests.rewrite.rewriting import assert_same_numbers, parse, to_ir

NORM = """
g (float[1,2,4,4] x) => (float[1,3,4,4] y{more})
<float[3,2,1,1] w = {{1,2,3,4,5,6}}, float[3] s = {{1,2,3}}, float[3] b = {{4,5,6}},
 float[3] m = {{1,-1,2}}, float[3] v = {{1,2,3}}>
{{ c = Conv(x, w)
   y = BatchNormalization{training}(c, s, b, m, v){end} }}
"""
LINEAR = """
g (float[1,4,4,2] x) => (float[1,3,4,4] y)
<float[2,3] w = {{1,2,3,4,5,6}}, float[3] b = {{4,5,6}}, float[{shape}] k = {{{gain}}}>
{{ p = MatMul(x, w)
   a = Add(p, b)
   t = Transpose<perm=[0,3,1,2]>(a)
   y = Mul(t, k) }}
"""
SUM = """
g (float[1,2,4,4] x) => (float[1,2,4,4] y)
<float[2,2,1,1] w = {1,2,3,4}, float[2] b = {4,5}, float[2] d = {1,2}>
{ a = Conv(x, w, b)
  c = Conv(x, w, d)
  y = Add(a, c) }
"""


ADDED = """
g (float[1,2,4,4] x) => (float[{result}] y)
<float[3,2,1,1] w = {{1,2,3,4,5,6}}, float[3] b = {{4,5,6}}, float[{shape}] c = {{{numbers}}}>
{{ v = Conv(x, w{bias})
   {moved}
   y = Add({operands}) }}
"""
APART = """
g (float[1,2,4] x) => (float[1,3,8] y)
<float[2,3,2] w = {1,2,3,4,5,6,7,8,9,10,11,12}, float[3] b = {4,5,6}>
{ y = ConvTranspose<strides=[2]>(x, w, b) }
"""


def folded(text: str) -> tuple[onnx.ModelProto, Counter[str]]:
    given = parse(text)
    model = to_ir(given)
    applied = rewrite_model(
        model, (FoldBatchNormalization(), FoldScale(), FoldBias(), JoinBiases())
    )
    remove_dead(model)
    result = ir.to_proto(model)
    onnx.checker.check_model(result, full_check=True)
    assert_same_numbers(given, result, exact=False)
    return result, Counter(node.op_type for node in result.graph.node) + applied


def test_a_normalisation_becomes_part_of_the_convolution() -> None:
    result, counts = folded(NORM.format(more="", training="", end=""))
    assert counts["Conv"] == 1
    assert counts["BatchNormalization"] == 0
    (node,) = result.graph.node
    assert node.output[0] == "y"


def test_a_convolution_that_others_read_is_left() -> None:
    text = NORM.format(more=", float[1,3,4,4] z", training="", end="\n   z = Relu(c)")
    assert folded(text)[1]["BatchNormalization"] == 1


@pytest.mark.parametrize(("shape", "gain"), [("3,1,1", "2,3,4"), ("1,3,1,1", "2,3,4")])
def test_a_gain_becomes_part_of_a_linear_layer(shape: str, gain: str) -> None:
    _, counts = folded(LINEAR.format(shape=shape, gain=gain))
    assert counts["Mul"] == 0
    assert counts["Transpose"] == 1


def test_a_gain_along_another_axis_is_left() -> None:
    assert folded(LINEAR.format(shape="4", gain="1,2,3,4"))[1]["Mul"] == 1


def test_of_two_biases_one_is_left() -> None:
    result, counts = folded(SUM)
    assert counts["join biases"] == 1
    arities = sorted(len([name for name in node.input if name]) for node in result.graph.node)
    assert arities == [2, 2, 3]
    sums = [onnx.numpy_helper.to_array(tensor) for tensor in result.graph.initializer]
    assert any(np.array_equal(array, np.array([5, 7], np.float32)) for array in sums)


MOVED = "t = Transpose<perm=[0,2,3,1]>(v)"


@pytest.mark.parametrize(
    ("bias", "moved", "operands", "shape", "result"),
    [
        ("", "", "v, c", "3,1,1", "1,3,4,4"),
        (", b", "", "c, v", "1,3,1,1", "1,3,4,4"),
        ("", MOVED, "t, c", "3", "1,4,4,3"),
        (", b", MOVED, "c, t", "1,1,1,3", "1,4,4,3"),
    ],
)
def test_a_constant_for_each_channel_becomes_the_bias(
    bias: str, moved: str, operands: str, shape: str, result: str
) -> None:
    text = ADDED.format(
        bias=bias, moved=moved, operands=operands, shape=shape, result=result, numbers="1,-2,3"
    )
    made, counts = folded(text)
    assert counts["Add"] == 0
    (conv,) = (node for node in made.graph.node if node.op_type == "Conv")
    assert len(conv.input) == 3


@pytest.mark.parametrize(
    ("moved", "operands", "shape", "numbers", "result"),
    [
        ("", "v, c", "4", "1,2,3,4", "1,3,4,4"),
        ("", "v, c", "3,4,1", "1,2,3,4,5,6,7,8,9,10,11,12", "1,3,4,4"),
        (MOVED, "t, c", "4,1", "1,2,3,4", "1,4,4,3"),
        ("s = Relu(v)", "v, s", "3", "1,2,3", "1,3,4,4"),
    ],
    ids=["columns", "channels and rows", "rows moved", "no constant"],
)
def test_other_sums_stay(moved: str, operands: str, shape: str, numbers: str, result: str) -> None:
    text = ADDED.format(
        bias="", moved=moved, operands=operands, shape=shape, numbers=numbers, result=result
    )
    assert folded(text)[1]["Add"] == 1


def test_the_bias_of_a_transposed_convolution_is_set_apart() -> None:
    given = parse(APART)
    model = to_ir(given)
    rewrite_model(model, [BiasApart()])
    result = ir.to_proto(model)
    onnx.checker.check_model(result, full_check=True)
    assert [node.op_type for node in result.graph.node] == ["ConvTranspose", "Add"]
    assert len(result.graph.node[0].input) == 2
    assert_same_numbers(given, result, exact=False)
