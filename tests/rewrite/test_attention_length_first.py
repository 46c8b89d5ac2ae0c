"""Attentions whose operands lie with their length before the batch are raised too."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

import relayout
from tests.rewrite.rewriting import parse

MODEL = """
g (float[{batch},5,8] x) => (float[{batch},5,8] y)
<int64[3] merged = {{5,{rows},4}}, int64[3] joined = {{5,{batch},8}},
 int64[4] parts = {{5,{batch},3,8}}, int64 zero = {{0}}, int64 one = {{1}}, int64 two = {{2}},
 int64 power = {{4}}>
{{ t = Transpose<perm=[1,0,2]>(x)
  p = MatMul(t, w)
  a = Reshape(p, parts)
  q0 = Gather<axis=2>(a, zero)
  k0 = Gather<axis=2>(a, one)
  v0 = Gather<axis=2>(a, two)
  q3 = Reshape(q0, merged)
  q = Transpose<perm=[1,0,2]>(q3)
  k3 = Reshape(k0, merged)
  k = Transpose<perm=[1,2,0]>(k3)
  v3 = Reshape(v0, merged)
  v = Transpose<perm=[1,0,2]>(v3)
  width = Cast<to=1>(power)
  root = Sqrt(width)
  scaled = Div(q, root)
  s = MatMul(scaled, k)
  f = Softmax<axis=-1>(s)
  r = MatMul(f, v)
  r3 = Transpose<perm=[1,0,2]>(r)
  j = Reshape(r3, joined)
  m = MatMul(j, o)
  y = Transpose<perm=[1,0,2]>(m) }}
"""


def model(batch: int, opset: int) -> onnx.ModelProto:
    """As torch exports its MultiheadAttention: batch and heads are one axis of the products."""
    made = parse(MODEL.format(batch=batch, rows=2 * batch), opset)
    drawn = np.random.default_rng(0)
    for name, shape in {"w": (8, 24), "o": (8, 8)}.items():
        array = drawn.standard_normal(shape, np.float32)
        made.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    return made


OPERATORS = [("onnx", 23, "Attention"), ("ort", 17, "MultiHeadAttention")]


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize(("target", "opset", "operator"), OPERATORS)
def test_no_transpose_is_left(batch: int, target: str, opset: int, operator: str) -> None:
    result = relayout.optimize(model(batch, opset), target=target, minimize="bytes")
    operators = [node.op_type for node in result.model.graph.node]
    assert operator in operators
    assert "Transpose" not in operators
    assert "Sqrt" not in operators
    (attention,) = (node for node in result.model.graph.node if node.op_type == operator)
    scale = {attribute.name: attribute.f for attribute in attention.attribute}["scale"]
    assert scale == pytest.approx(0.5)
