"""What depends on constants alone is computed now, where nothing is rounded by it."""

from __future__ import annotations

import onnx_ir as ir
import pytest

from relayout.optimizer.pipeline import simplifying
from relayout.rewrite.worklist import rewrite_model
from relayout.targets.target import TARGETS
from tests.rewrite.rewriting import assert_same_numbers, parse, to_ir

WINDOWS = """g (float[4,9,9] x) => (float[4,9,9] y)
<int64[2] image = {6,6}, int64[4] parts = {2,3,2,3}, int64[2] rows = {4,9},
 int64[3] down = {4,1,9}, int64[3] across = {4,9,1}, int64[4,1] at = {0,1,4,5},
 float[4,6] ones = {1,1,1,1,1,1,2,2,2,2,2,2,3,3,3,3,3,3,4,4,4,4,4,4},
 float zero = {0}, float hidden = {-100}>
{ blank = ConstantOfShape(image)
  marked = ScatterND(blank, at, ones)
  split = Reshape(marked, parts)
  turned = Transpose<perm = [0,2,1,3]>(split)
  windows = Reshape(turned, rows)
  a = Reshape(windows, down)
  b = Reshape(windows, across)
  apart = Sub(a, b)
  same = Equal(apart, zero)
  differ = Not(same)
  masked = Where(differ, hidden, apart)
  mask = Where(same, zero, masked)
  y = Add(x, mask) }"""

CAUSAL = """g (float[5,5] x) => (float[5,5] y)
<int64 first = {0}, int64 last = {5}, int64 step = {1}, int64[2] column = {5,1},
 float zero = {0}, float hidden = {-1e9}>
{ places = Range(first, last, step)
  rows = Reshape(places, column)
  later = Greater(places, rows)
  nearer = LessOrEqual(places, rows)
  both = Xor(later, nearer)
  shown = And(both, nearer)
  mask = Where(shown, zero, hidden)
  y = Add(x, mask) }"""

LOWER = """g (float[3,3] x) => (float[3,3] y)
<int64[2] square = {3,3}, float one = {1}, float scale = {-10000}>
{ ones = ConstantOfShape<value = float[1] {1.0}>(square)
  low = Trilu<upper = 0>(ones)
  high = Sub(one, low)
  mask = Mul(high, scale)
  y = Add(x, mask) }"""

PICKED = """g (float[2,2] x) => (float[2,2] y)
<float[2,2] w = {1,2,3,4}, int64[2,2] at = {0,0,1,0}, float[2,2] new = {7,8,9,6}>
{ a = GatherElements<axis = 1>(w, at)
  b = ScatterElements<axis = 0>(a, at, new)
  y = Add(x, b) }"""


@pytest.mark.parametrize("text", [WINDOWS, CAUSAL, LOWER, PICKED])
def test_masks_are_made_before_the_model_runs(text: str) -> None:
    given = parse(text)
    model = to_ir(given)
    rewrite_model(model, simplifying(TARGETS.of("onnx")))
    result = ir.to_proto(model)
    assert [node.op_type for node in result.graph.node if node.op_type != "Constant"] == ["Add"]
    assert_same_numbers(given, result, exact=True)


def test_what_nothing_evaluates_here_stays() -> None:
    text = """g (float[2] x) => (float[2] y)
    <float[2] a = {1, 2}, int64[1] at = {0}, float[1] new = {3}>
    { w = Scatter(a, at, new) y = Add(x, w) }"""
    assert not rewrite_model(to_ir(parse(text, opset=9)), simplifying(TARGETS.of("onnx")))


@pytest.mark.parametrize(
    "made",
    [
        "w = Mul(a, b)",
        "w = Add(a, b)",
        'w = ScatterElements<reduction = "add">(a, at, b)',
    ],
)
def test_weights_that_would_be_rounded_stay_as_they_are_given(made: str) -> None:
    text = f"""g (float[2] x) => (float[2] y)
    <float[2] a = {{0.1, 0.3}}, float[2] b = {{0.7, 3.3}}, int64[2] at = {{0, 0}}>
    {{ {made} y = Add(x, w) }}"""
    model = to_ir(parse(text))
    assert not rewrite_model(model, simplifying(TARGETS.of("onnx")))
