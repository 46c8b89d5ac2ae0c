"""Lengths at which a model runs at all are found by what its operators ask for."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from relayout.verify.numeric import compare

MODELS = {
    "a view of so many elements": """
        (float[a, b, c] x, float[4, 5] z) => (float[p, q] y)
        <int64[2] form = {-1, 5}> { v = Reshape(x, form) y = Add(v, z) }""",
    "a view of fixed lengths": """
        (float[a, 6] x) => (float[p, q, r] y)
        <int64[3] form = {2, 3, 7}> { y = Reshape(x, form) }""",
    "a view of copied lengths": """
        (float[a, b, 6] x, float[7, 2] w) => (float[p, q, r] y)
        <int64[4] form = {0, 0, 3, 2}>
        { v = Reshape(x, form) t = Transpose<perm = [0, 3, 2, 1]>(v) y = MatMul(t, w) }""",
    "scales of a normalisation": """
        (float[a, b, c] x, float[3, 5] s) => (float[p, q, r] y)
        { y = LayerNormalization<axis = 1>(x, s) }""",
    "repeated rows of a product": """
        (float[a, b] x, float[12, 5] w) => (float[p, q] y)
        <int64[2] counts = {1, 3}> { t = Tile(x, counts) y = MatMul(t, w) }""",
    "channels in blocks": """
        (float[1, a, b, c] x, float[1, 2, 9, 1] z) => (float[p, q, r, s] y)
        { d = DepthToSpace<blocksize = 3>(x) y = Mul(d, z) }""",
    "padded rows": """
        (float[a, b] x, float[7] z) => (float[p, q] y)
        <int64[4] pads = {0, 1, 0, 2}> { v = Pad(x, pads) y = Sub(v, z) }""",
    "windows": """
        (float[1, a, b, 9] x, float[4, 3, 3, 3] w, float[4, 5, 9] z) => (float[p, q, r, s] y)
        { c = Conv<pads = [0, 1, 0, 1]>(x, w) y = Add(c, z) }""",
    "windows further apart": """
        (float[1, a, 9] x, float[4, 3, 3] w, float[5, 8] v) => (float[p, q, r] y)
        { c = Conv<strides = [2], pads = [1, 1]>(x, w) y = MatMul(c, v) }""",
    "a recurrence": """
        (float[a, b, c] x, float[d, e, 5] w, float[1, f, 12] r, float[7, 1, 1, 1] z)
        => (float[p, q, s, t] y)
        { h = GRU<hidden_size = 12>(x, w, r) y = Add(h, z) }""",
    "slices": """
        (float[a, b] x, float[3, 5] w) => (float[p, q] y)
        { y = Scan<num_scan_inputs = 2, scan_input_axes = [1, 0], body = g (float[u] s, float[5] t)
        => (float[v] o) { o = Add(s, t) }>(x, w) }""",
    "slices of declared lengths": """
        (float[a, b, 2] x) => (float[p, q, r] y)
        { y = Scan<num_scan_inputs = 1, body = g (float[5, 2] s) => (float[10] o)
        { f = Flatten<axis = 0>(s) zero = Constant<value_ints = [0]>()
        o = Squeeze(f, zero) }>(x) }""",
    "sums over named axes": """
        (float[a, b] x, float[b, 3, c] w, float[5, 8] z) => (float[p] y)
        { e = Einsum<equation = "ij,jkl->il">(x, w) m = MatMul(e, z) y = ReduceSum(m) }""",
    "parts": """
        (float[a, 4] x, float[3, 4] z) => (float[p, q] y)
        { u, v = Split(x) y = Max(u, v, z) }""",
    "joined parts": """
        (float[a, 4] x, float[b, c] z, float[9, 4] w) => (float[p, q] y)
        { j = Concat<axis = 0>(x, z) y = Add(j, w) }""",
    "a scale a channel": """
        (float[2, a, b] x, float[5] s) => (uint8[p, q, r] y)
        { y = QuantizeLinear<axis = 1>(x, s) }""",
    "lengths that are fed": """
        (float[2, 1, 4] x, int64[3] form, float[3, 5] z) => (float[p, q] y)
        <int64[2] eight = {8, 3}> { e = Expand(x, form) t = Transpose(e) v = Reshape(t, eight)
        y = MatMul(v, z) }""",
    "a sum of what is fed": """
        (float[a, 4] x, int64[1] past, float[b, 4] z) => (float[p, q] y)
        <int64[1] zero = {0}, int64[1] rest = {4}> { s = Shape(x) n = Gather(s, zero)
        m = Add(n, past) form = Concat<axis = 0>(m, rest) o = ConstantOfShape(form)
        y = Add(o, z) }""",
    "a window as long as fed": """
        (int32 n, float[7, 9] z) => (float[p, q] y)
        <int64[2] form = {7, 9}> { w = HannWindow(n) v = Reshape(w, form) y = Mul(v, z) }""",
    "bands of a spectrum": """
        (int64 n, int64 rate, float low, float high, float[9, 5] w) => (float[p, q] y)
        <int64 length = {16}, int64[2] form = {9, 5}>
        { m = MelWeightMatrix(n, length, rate, low, high) v = Reshape(m, form) y = Add(v, w) }""",
    "a range": """
        (int64 n, int64[11] z) => (int64[p] y)
        <int64 two = {2}, int64 one = {1}> { r = Range(two, n, one) y = Add(r, z) }""",
    "classes": """
        (int64[a] x, float[12, 5] w) => (float[p, q] y)
        <int64 depth = {4}, float[2] both = {0, 1}, int64[2] form = {-1, 12}>
        { h = OneHot(x, depth, both) v = Reshape(h, form) y = MatMul(v, w) }""",
    "a picture in sizes": """
        (float[1, 2, a, b] x, float[7, 5] w) => (float[p, q, r, s] y)
        <float[4] twice = {1, 1, 1, 2}> { v = Resize(x, , twice)
        m = AveragePool<kernel_shape = [1, 4]>(v) y = MatMul(m, w) }""",
    "spread windows": """
        (float[1, a, b] x, float[3, 4, 3] k, float[9, 5] w) => (float[p, q, r] y)
        { c = ConvTranspose<strides = [2]>(x, k) y = MatMul(c, w) }""",
    "tuples of places": """
        (float[3, a, b] x, int64[2, c, 1] i, float[5, 2] w) => (float[p, q, r, s] y)
        { g = GatherND(x, i) y = MatMul(g, w) }""",
    "weighted classes": """
        (float[a, b] x, int64[6] t, float[3] k) => (float y)
        { y = NegativeLogLikelihoodLoss(x, t, k) }""",
    "quantised products": """
        (uint8[a, b] x, uint8[7, c] w, int32[4, 3] z) => (int32[p, q] y)
        { m = MatMulInteger(x, w) y = Add(m, z) }""",
    "a scale a block": """
        (float[a, b] x, float[3, 5] s) => (uint8[p, q] y)
        { y = QuantizeLinear<axis = 1, block_size = 4>(x, s) }""",
    "a body": """
        (float[a, b] x, float[3, 4] z) => (float[p, q] y)
        <bool c = {1}> { y = If(c) <then_branch = yes () => (float[p, q] u) { u = Add(x, z) },
        else_branch = no () => (float[p, q] v) { v = Sub(z, x) }> }""",
    "places of updates": """
        (float[2, 9, 4] cache, float[a, 3, b] new, int64[c] at) => (float[p, q, r] y)
        { y = TensorScatter<axis = 1>(cache, new, at) }""",
    "places of updates in open lengths": """
        (float[2, 3, a, 4] cache, float[b, 3, c, d] new, int64[2] at) => (float[p, q, r, s] y)
        { y = TensorScatter(cache, new, at) }""",
    "windows stated besides": """
        (float[1, 3, 9, 9] x, float[4, 3, a, b] w) => (float[p, q, r, s] y)
        { y = Conv<kernel_shape = [9, 7]>(x, w) }""",
    "windows of steps stated besides": """
        (float[1, 3, 4] x, float[3, 2, a] w) => (float[p, q, r] y)
        { y = ConvTranspose<kernel_shape = [9], pads = [1, 2]>(x, w) }""",
    "what rounds give": """
        (float[3, 5] x, float[a, b] w) => (float[p, q, r] y)
        <int64 n = {7}, bool c = {1}>
        { last, all = Loop(n, c, x) <body = round (int64 i, bool g, float[s, t] u) =>
        (bool h, float[s, t] v, float[s, t] o) { h = Identity(g) v = Neg(u) o = Transpose(u) }>
        t = Transpose<perm = [1, 2, 0]>(all) y = MatMul(t, w) }""",
    "what rounds give that are fed": """
        (int64 n, float[3, 5] x, float[11, 2] w) => (float[p, q, r] y)
        <bool c = {1}>
        { last, all = Loop(n, c, x) <body = round (int64 i, bool g, float[s, t] u) =>
        (bool h, float[s, t] v, float[s, t] o) { h = Identity(g) v = Neg(u) o = Identity(u) }>
        t = Transpose<perm = [1, 2, 0]>(all) y = MatMul(t, w) }""",
    "what slices give": """
        (float[3, a, 4] x, float[26, 2] w) => (float[p, q, r] y)
        { all = Scan<num_scan_inputs = 1, scan_input_axes = [1], scan_output_axes = [2],
        body = one (float[s, t] u) => (float[s, t] o) { o = Neg(u) }>(x)
        twice = Concat<axis = 2>(all, all) y = MatMul(twice, w) }""",
    "an axis that is fed": """
        (float[a] x, int32 x94) => (float[p] y) { y = CumSum<reverse = 1>(x, x94) }""",
    "steps that have to be none": """
        (float[4, 6] x, int64[2] starts, float[4, 6] z) => (float[p, q] y)
        <int64[2] ends = {4, 6}> { v = Slice(x, starts, ends) y = Mul(v, z) }""",
    "a product with flags": """
        (float[5, a, b] x) => (float[p, q, r] y)
        <float[9, 2] w = {1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3, 4, 5, 6, 7, 8, 9}>
        { y = com.microsoft.FusedMatMul<transA = 1>(x, w) }""",
    "a quantised product of matrices": """
        (uint8[a, b] x) => (uint8[p, q] y)
        <uint8[9, 1] w = {1, 2, 3, 4, 5, 6, 7, 8, 9}, float s = {0.5}, uint8 z = {3}>
        { y = com.microsoft.QGemm<transA = 1>(x, s, z, w, s, z, , s, z) }""",
    "quantised terms": """
        (uint8[a, b] x) => (uint8[p, q] y)
        <uint8[7, 1] w = {1, 2, 3, 4, 5, 6, 7}, uint8[9, 1] v = {1, 2, 3, 4, 5, 6, 7, 8, 9},
        float s = {0.5}, uint8 z = {3}>
        { m = com.microsoft.QLinearAdd(x, s, z, w, s, z, s, z)
        y = com.microsoft.QGemm(m, s, z, v, s, z, , s, z) }""",
    "a normalised sum": """
        (float[a, b, c] x, float[2, 9, 6] r, float[d] s) => (float[p, q, t] y)
        { y = com.microsoft.SkipLayerNormalization(x, r, s) }""",
}


@pytest.mark.parametrize("name", MODELS)
def test_lengths_that_a_model_needs_are_found(tmp_path: Path, name: str) -> None:
    path = tmp_path / "a.onnx"
    text = f'<ir_version: 8, opset_import: ["" : 24, "com.microsoft" : 1]> g {MODELS[name]}'
    onnx.save(onnx.parser.parse_model(text), path)
    verdict = compare(path, path)
    assert verdict.exact
    assert verdict.bindings
