"""Convolutions on bytes run channels last: which Transposes that takes, and which it takes away."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx.numpy_helper import from_array

from relayout.graph.io.load import load
from relayout.graph.region import regions_of
from relayout.targets.ort_quantised_convs import border_price, joined_transposes
from relayout.targets.prediction import measure_on
from relayout.targets.prices.table import shipped
from relayout.targets.target import ONNX, ORT, Target
from tests.rewrite.rewriting import parse

PRICES = shipped("onnxruntime_x86_64")

CONV = """
<ir_version: 8, opset_import: ["" : 17]>
g (float[1,16,16,32] x) => (float[A,B,C,D] y)
<float s = {0.02}, uint8 z = {128}, int8 n = {0}, int64[4] made = {1, 32, 16, 16},
 float[4] scales = {1.0, 1.0, 2.0, 2.0}> {
  BEFORE
  q = QuantizeLinear(f, s, z)
  d = DequantizeLinear(q, s, z)
  v = DequantizeLinear(w, s, n)
  c = Conv<pads = [1, 1, 1, 1]>(d, v)
  e = QuantizeLinear(c, s, z)
  k = DequantizeLinear(e, s, z)
  AFTER
}
"""
FIRST, LAST = "Transpose<perm = [0, 3, 1, 2]>", "Transpose<perm = [0, 2, 3, 1]>"


def conv(before: str, after: str) -> onnx.ModelProto:
    model = parse(CONV.replace("BEFORE", before).replace("AFTER", after))
    model.graph.initializer.append(from_array(np.ones((32, 32, 3, 3), np.int8), "w"))
    return model


def told(model: onnx.ModelProto) -> tuple[int, int]:
    """How many Transposes go, and what stays."""
    region = next(iter(regions_of(load(model).ir)))
    prices = (border_price(region.view(node), PRICES, {}) for node in region.graph)
    return len(joined_transposes(region.graph)), sum(prices)


@pytest.mark.parametrize(
    "before",
    [
        f"f = {FIRST}(x)",
        f"t = {FIRST}(x)\n f = Relu(t)",
        f"t = {FIRST}(x)\n f = Resize(t, , scales)",
        f"t = {FIRST}(x)\n u = Neg(t)\n f = Concat<axis = 2>(t, u)",
    ],
)
@pytest.mark.parametrize("after", [f"y = {LAST}(k)", f"r = Sigmoid(k)\n y = {LAST}(r)"])
def test_transposes_on_both_sides_go(before: str, after: str) -> None:
    assert told(conv(before, after)) == (2, 0)


@pytest.mark.parametrize(
    ("before", "after", "joined"),
    [
        ("f = Reshape(x, made)", f"y = {LAST}(k)", 1),
        (f"f = {FIRST}(x)", "y = Relu(k)", 1),
        (f"f = {FIRST}(x)", "y = Transpose<perm = [1, 0, 2, 3]>(k)", 1),
        ("f = Transpose<perm = [0, 3, 2, 1]>(x)", f"y = {LAST}(k)", 1),
        ("f = Reshape(x, made)", "y = Relu(k)", 0),
    ],
)
def test_others_stay_at_the_border(before: str, after: str, joined: int) -> None:
    found, price = told(conv(before, after))
    assert found == joined
    assert price > 0


def test_a_convolution_of_floats_has_no_border() -> None:
    text = CONV.replace("BEFORE", "f = Reshape(x, made)").replace("AFTER", "y = Relu(c)")
    model = parse(text)
    model.graph.initializer.append(from_array(np.ones((32, 32, 3, 3), np.int8), "w"))
    assert told(model) == (0, 0)


IMAGE = """
<ir_version: 8, opset_import: ["" : 17]>
g (float[1,256,64] x) => (float[1,8,16,16] y)
<float s = {0.02}, uint8 z = {128}, int8 n = {0},
 int64[4] last = {1, 16, 16, 64}, int64[4] first = {1, 64, 16, 16}> {
  PROJECTED
  q = QuantizeLinear(f, s, z)
  d = DequantizeLinear(q, s, z)
  wc = DequantizeLinear(w, s, n)
  c = Conv<pads = [1, 1, 1, 1]>(d, wc)
  e = QuantizeLinear(c, s, z)
  y = DequantizeLinear(e, s, z)
}
"""
ROWS_FIRST = """m = MatMul(x, p)
  r = Reshape(m, last)
  f = Transpose<perm = [0, 3, 1, 2]>(r)"""
COLUMNS_FIRST = """t = Transpose<perm = [0, 2, 1]>(x)
  m = MatMul(p, t)
  f = Reshape(m, first)"""


def image(projected: str) -> onnx.ModelProto:
    model = parse(IMAGE.replace("PROJECTED", projected))
    model.graph.initializer.append(from_array(np.ones((64, 64), np.float32), "p"))
    model.graph.initializer.append(from_array(np.ones((8, 64, 3, 3), np.int8), "w"))
    return model


@pytest.mark.parametrize("target", [ONNX, ORT])
def test_a_transpose_that_goes_takes_less_than_one_moved_away(target: Target) -> None:
    """By the forms that ONNX Runtime makes of standard operators."""
    rows, columns = (
        measure_on(target, load(image(each)).ir, {}) for each in (ROWS_FIRST, COLUMNS_FIRST)
    )
    assert rows.transposes == columns.transposes == 1
    assert (3 * rows.nanoseconds < 2 * columns.nanoseconds) is (target is ONNX)
