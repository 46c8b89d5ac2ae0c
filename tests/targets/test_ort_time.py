"""What the form of a product takes, and which Transposes ONNX Runtime takes into its neighbours."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest
from onnx.numpy_helper import from_array

import relayout
from relayout.graph.io.load import load
from relayout.graph.read import is_op
from relayout.graph.region import regions_of
from relayout.layout.permutation import Permutation
from relayout.layout.transport import Changes
from relayout.targets.ort_absorbed import folds
from relayout.targets.ort_attention import taken_in
from relayout.targets.prices.table import shipped
from relayout.targets.products import form_price
from relayout.targets.reductions import reduction_price
from tests.rewrite.rewriting import parse

PRICES = shipped("onnxruntime_x86_64")


def price(product: str, after: str) -> int:
    text = f"""
    <ir_version: 10, opset_import: ["" : 17, "com.microsoft" : 1]>
    g (float[64,32] x, float[64,8] z) => (float[A,B] y)
    {{
        p = {product}
        y = {after}
    }}
    """
    given = parse(text)
    for name, shape in {"w": (32, 16), "v": (64, 16), "u": (8, 64), "b": (16,)}.items():
        given.graph.initializer.append(from_array(np.ones(shape, np.float32), name))
    model = load(given).ir
    region = next(iter(regions_of(model)))
    node = next(iter(region.graph))
    return form_price(region.view(node), Changes(), PRICES, {})


@pytest.mark.parametrize(
    ("product", "after", "is_dear"),
    [
        ("MatMul(x, w)", "Relu(p)", False),
        ("MatMul(x, w)", "Add(p, b)", False),
        ("com.microsoft.FusedMatMul<transA = 1>(x, v)", "Relu(p)", True),
        ("com.microsoft.FusedMatMul<transA = 0>(x, w)", "Relu(p)", False),
        ("com.microsoft.FusedMatMul<transA = 0>(x, w)", "Add(p, b)", True),
        ("MatMul(u, x)", "Relu(p)", True),
        ("MatMul(u, z)", "Relu(p)", True),
    ],
)
def test_the_form_of_a_product(product: str, after: str, is_dear: bool) -> None:
    assert (price(product, after) > 0) is is_dear


FOLDS = """
<ir_version: 10, opset_import: ["" : 17]>
g (float[2,{lengths}] x) => (float[A,B,C,D] y) {{
    t = Transpose<perm = {perm}>(x)
    y = {reader}
}}
"""


@pytest.mark.parametrize(
    ("perm", "reader", "expected"),
    [
        ([0, 1, 3, 2], "MatMul(t, x)", True),
        ([0, 2, 1, 3], "MatMul(t, x)", False),
        ([0, 1, 3, 2], "Relu(t)", False),
        ([0, 3, 1, 2], "Conv(t, w)", True),
        ([0, 3, 2, 1], "Conv(t, w)", False),
    ],
)
def test_what_the_runtime_folds(perm: list[int], reader: str, expected: bool) -> None:
    model = parse(FOLDS.format(lengths="8,8,8", perm=perm, reader=reader))
    model.graph.initializer.append(from_array(np.ones((8, 8, 1, 1), np.float32), "w"))
    graph: ir.Graph = load(model).ir.graph
    transpose = next(node for node in graph if is_op(node, "Transpose"))
    assert folds(transpose) is expected


BERT = """
<ir_version: 10, opset_import: ["" : 11]>
g (float[1,16,32] x, int64[1,16] mask) => (float[1,16,32] y)
   <float one = {1}, float low = {-10000}, float scale = {4},
    int64[4] heads = {0, 0, 4, 8}, int64[3] joined = {0, 0, 32}> {
    u = Unsqueeze<axes = [1]>(mask)
    v = Unsqueeze<axes = [2]>(u)
    c = Cast<to = 1>(v)
    s = Sub(one, c)
    m = Mul(s, low)
    q0 = MatMul(x, w)
    q1 = Add(q0, b)
    q2 = Reshape(q1, heads)
    q = Transpose<perm = [0, 2, 1, 3]>(q2)
    k0 = MatMul(x, w)
    k1 = Add(k0, b)
    k2 = Reshape(k1, heads)
    k = Transpose<perm = [0, 2, 3, 1]>(k2)
    v0 = MatMul(x, w)
    v1 = Add(v0, b)
    v2 = Reshape(v1, heads)
    vt = Transpose<perm = [0, 2, 1, 3]>(v2)
    qk = MatMul(q, k)
    d = Div(qk, scale)
    a = Add(d, MASK)
    p = Softmax<axis = 3>(a)
    o = MatMul(p, vt)
    t = Transpose<perm = [0, 2, 1, 3]>(o)
    y = Reshape(t, joined)
}
"""


@pytest.mark.parametrize(("mask", "count"), [("m", 18), ("c", 0)])
def test_an_attention_that_the_runtime_recognises(mask: str, count: int) -> None:
    model = parse(BERT.replace("MASK", mask))
    for name, shape in {"w": (32, 32), "b": (32,)}.items():
        model.graph.initializer.append(from_array(np.ones(shape, np.float32), name))
    graph: ir.Graph = load(model).ir.graph
    softmax = next(node for node in graph if is_op(node, "Softmax"))
    assert len(set(taken_in(softmax))) == count


@pytest.mark.parametrize(("axis", "is_dear"), [(1, True), (2, False)])
def test_a_reduction_that_keeps_the_innermost_axis(axis: int, is_dear: bool) -> None:
    text = f"""
    <ir_version: 10, opset_import: ["" : 13]>
    g (float[1,32,64] x) => (float[A,B,C] y) {{ y = ReduceMean<axes = [{axis}]>(x) }}
    """
    region = next(iter(regions_of(load(parse(text)).ir)))
    view = region.view(next(iter(region.graph)))
    assert (reduction_price(view, None, PRICES, {}) > 0) is is_dear
    swapped = Permutation.of(0, 2, 1)
    assert (reduction_price(view, swapped, PRICES, {}) > 0) is not is_dear


QUANTISED = """
<ir_version: 10, opset_import: ["" : 17]>
g (uint8[1,64,64,32] q) => (uint8[1,64,64,32] y)
<float s = {0.1}, uint8 z = {128}>
{
  x = DequantizeLinear(q, s, z)
  t = Transpose<perm=[0,3,1,2]>(x)
  r = Relu(t)
  u = Transpose<perm=[0,2,3,1]>(r)
  KERNEL
  y = QuantizeLinear(o, s, z)
}
"""
CONVOLUTION = """v = Transpose<perm=[0,3,1,2]>(u)
  c = Conv<pads=[1,1,1,1]>(v, w)
  o = Transpose<perm=[0,2,3,1]>(c)"""


@pytest.mark.parametrize(("kernel", "left"), [("o = Neg(u)", (0, 0)), (CONVOLUTION, (4, 2))])
def test_quantised_models_change_where_most_transposes_go(
    kernel: str, left: tuple[int, int]
) -> None:
    """By time, then by bytes: what a runtime makes of the Transposes that stay has no price."""
    model = parse(QUANTISED.replace("KERNEL", kernel))
    weight = from_array(np.ones((32, 32, 3, 3), np.float32), "w")
    model.graph.initializer.extend([weight] if kernel is CONVOLUTION else [])
    for objective, count in zip(("time", "bytes"), left, strict=True):
        result = relayout.optimize(model, target="ort", minimize=objective, verify=False)
        assert result.after.transposes == count
