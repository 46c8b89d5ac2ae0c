"""Where its operator is faster, an attention is raised whose heads come or go apart."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from relayout.targets.target import ORT, TORCH
from tests.rewrite.rewriting import parse
from tests.rewrite.test_attention import attentions, feeds_of, raised, reference, run

CACHED = """step (float[2,1,24] x, float[2,3,6,8] pk, float[2,3,6,8] pv) => (float[2,1,24] out)
    <float scale = {0.3}, int64[4] apart = {2,1,3,8}, int64[3] flat = {2,1,24}> {
    x4 = Reshape (x, apart) h = Transpose <perm = [0,2,1,3]> (x4)
    kn = Concat <axis = 2> (pk, h) v = Concat <axis = 2> (pv, h)
    qs = Mul (h, scale) k = Transpose <perm = [0,1,3,2]> (kn) ks = Mul (k, scale)
    s = MatMul (qs, ks) w = Softmax <axis = -1> (s) r = MatMul (w, v)
    rt = Transpose <perm = [0,2,1,3]> (r) out = Reshape (rt, flat) }"""

TURNED = """turn (float[2,4,5,8] x, float[2,4,5,8] y, float[5,8] c) => (float[2,4,5,8] out)
    <float scale = {3.0}> {
    q = Mul (x, c) kn = Mul (y, c) k = Transpose <perm = [0,1,3,2]> (kn)
    s = MatMul (q, k) sc = Div (s, scale) w = Softmax <axis = -1> (sc) out = MatMul (w, y) }"""

GROUPED = """share (float[2,4,5,8] q, float[2,2,7,8] y, float[5,7] m) => (float[2,4,5,8] out)
    <int64[1] two = {2}, int64[5] times = {1,1,2,1,1}, int64[4] all = {2,4,7,8}> {
    y5 = Unsqueeze (y, two) many = Tile (y5, times) v = Reshape (many, all)
    k = Transpose <perm = [0,1,3,2]> (v) s = MatMul (q, k) sm = Add (s, m)
    w = Softmax <axis = -1> (sm) out = MatMul (w, v) }"""

STORED_OTHERWISE = """turn (float[5,2,3,8] x, float[2,8,7,3] y) => (float[2,3,5,8] out) {
    q = Transpose <perm = [1,2,0,3]> (x) k = Transpose <perm = [0,3,1,2]> (y)
    v = Transpose <perm = [0,1,3,2]> (k) s = MatMul (q, k) w = Softmax <axis = -1> (s)
    out = MatMul (w, v) }"""

TEXTS = {"past": CACHED, "turned": TURNED, "grouped": GROUPED, "otherwise": STORED_OTHERWISE}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_heads_that_come_apart(text: str) -> None:
    model = parse(text, 17)
    assert not attentions(raised(model, ORT))
    result = raised(model, TORCH)
    onnx.checker.check_model(result)
    assert len(attentions(result)) == 1, onnx.printer.to_text(result)
    feeds = feeds_of(model)
    expected = reference(model, feeds)
    np.testing.assert_allclose(run(result, feeds)[0], expected, rtol=2e-6, atol=2e-6)


def test_values_that_are_scaled_stay() -> None:
    scaled = TURNED.replace("out = MatMul (w, y)", "z = Mul (y, scale) out = MatMul (w, z)")
    assert not attentions(raised(parse(scaled, 17), TORCH))


def test_heads_of_unknown_number_stay() -> None:
    text = TURNED.replace("[2,4,5,8]", "[2,h,5,8]")
    assert not attentions(raised(parse(text, 17), TORCH))
