"""Whole runs: branches, loops, functions, lengths, and what is unknown."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from relayout.verify.field.context import WorkLimits
from relayout.verify.field.run import field_compare, field_run
from tests.verify.field.models import model, status_of, verdict_on

BRANCHES = """g (bool c, float[2,3] x) => (float[a,b] y) {{
    y = If(c) <then_branch = t () => (float[2,3] p) {{ p = {yes}(x) }},
               else_branch = e () => (float[2,3] q) {{ q = {no}(x) }}>
}}"""


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("yes", "no"), [("Tanh", "Sigmoid"), ("Relu", "Tanh")])
def test_both_branches_are_compared(yes: str, no: str, seed: int) -> None:
    given = BRANCHES.format(yes="Relu", no="Sigmoid")
    assert status_of(given, BRANCHES.format(yes=yes, no=no), seed) == "differs"
    assert status_of(given, given, seed) == "equal"


def test_a_branch_by_lengths_is_not_forced() -> None:
    """The branch that these lengths never take may hold what does not run at them."""
    text = """g (float[2,3] x) => (float[a,b] y) <int64 k = {2}, int64[2] bad = {5, 5}> {
        s = Size(x)
        c = Greater(s, k)
        y = If(c) <then_branch = t () => (float[2,3] p) { p = Relu(x) },
                   else_branch = e () => (float[5,5] q) { q = Reshape(x, bad) }>
    }"""
    assert status_of(text, text) == "equal"


LOOP = """g (float[2] x) => (float[2] y, float[n,2] z) <int64 m = {{3}}, bool go = {{1}}> {{
    y, z = Loop(m, go, x) <body = b (int64 i, bool c, float[2] s)
        => (bool d, float[2] u, float[2] v) {{ d = Identity(c) t = Add(s, x) u = {step}(t)
            v = Neg(u) }}>
}}"""


def test_loops_run_their_rounds() -> None:
    given = LOOP.format(step="Tanh")
    assert status_of(given, given) == "equal"
    assert status_of(given, LOOP.format(step="Sigmoid")) == "differs"
    unrolled = """g (float[2] x) => (float[2] y, float[n,2] z) <int64[1] a = {0}> {
        t1 = Add(x, x) u1 = Tanh(t1) t2 = Add(u1, x) u2 = Tanh(t2) t3 = Add(x, u2) y = Tanh(t3)
        w1 = Unsqueeze(u1, a) w2 = Unsqueeze(u2, a) w3 = Unsqueeze(y, a)
        w = Concat<axis=0>(w1, w2, w3) z = Neg(w) }"""
    assert status_of(given, unrolled) == "equal"


def test_a_loop_that_does_not_end_is_too_large() -> None:
    text = """g (float[2] x) => (float[2] y) <bool go = {1}> {
        y = Loop(, go, x) <body = b (int64 i, bool c, float[2] s) => (bool d, float[2] u) {
            d = Identity(c) u = Add(s, x) }> }"""
    limits = WorkLimits(rounds=10)
    verdict = field_run(model(text), model(text), binding={}, seed=0, limits=limits)
    assert (verdict.status, "10 rounds" in verdict.reason) == ("unknown", True)


def test_functions_are_inlined() -> None:
    called = """g (float[2,3] x) => (float[a,b] y) { y = local.twice<gain = 0.5>(x) }
        <domain: "local", opset_import: ["" : 21]>
        twice <gain> (u) => (w) { k = Constant<value_float: float = @gain>() v = Mul(u, k)
            w = Add(v, v) }"""
    plain = "g (float[2,3] x) => (float[a,b] y) { y = Identity(x) }"
    assert status_of(called, plain) == "equal"
    assert status_of(called.replace("0.5", "0.25"), plain) == "differs"


def test_an_operator_that_nobody_knows_is_named() -> None:
    text = "g (float[2] x) => (float[2] y, float[2] z) { y = strange.Thing(x) z = Relu(x) }"
    verdict = verdict_on(text, text)
    assert verdict.status == "unknown"
    assert [output.status for output in verdict.outputs] == ["unknown", "equal"]
    assert "strange.Thing" in verdict.reason


def test_an_operator_without_a_rule_is_a_hash_of_all_it_reads() -> None:
    text = "g (float[4,2,2] x) => (float[a] y) {{ t = {0}(x) y = Det(t) }}"
    assert status_of(text.format("Identity"), text.format("Identity")) == "equal"
    assert status_of(text.format("Identity"), text.format("Neg")) == "differs"


def test_nothing_compared_is_not_equal() -> None:
    text = "g (float[n,3] x) => (float[n,3] y) { y = Relu(x) }"
    assert verdict_on(text, text, n=0).status == "unknown"
    assert verdict_on(text, text, n=1).status == "equal"


def test_what_is_too_large_says_so() -> None:
    text = """g (float[1] x) => (float[a,b] y) <int64[2] s = {1000000, 1000000}> {
        y = Expand(x, s) }"""
    verdict = verdict_on(text, text)
    assert (verdict.status, "too large" in verdict.reason) == ("unknown", True)


def test_few_lengths_that_are_too_large_are_tried() -> None:
    text = """g (float[n,1] x) => (float[n,n] y) <int64[2] s = {1, 1000}> { y = Expand(x, s) }"""
    limits = WorkLimits(at_once=100)
    verdict = field_compare(model(text), model(text), limits=limits)
    assert (verdict.status, verdict.too_large) == ("unknown", True)


def test_the_first_difference_is_told() -> None:
    given = "g (float[2,3] x) => (float[a,b] y) { y = Identity(x) }"
    made = """g (float[2,3] x) => (float[a,b] y)
        <float[2,3] k = {0, 0, 0, 0, 1, 1}> { y = Add(x, k) }"""
    (output,) = verdict_on(given, made).outputs
    assert output.index == (1, 1)
    assert isinstance(output.before, int)
    assert output.after == output.before + 1
    assert "2 of 6 elements" in output.reason


def test_open_lengths_are_tried_in_several_sizes() -> None:
    """At length 1 both are equal; at a prime they are not."""
    given = "g (float[n,2] x) => (float[n,2] y) { y = Identity(x) }"
    made = """g (float[n,2] x) => (float[n,2] y)
        <int64[1] s = {-1}, int64[1] e = {-9}, int64[1] z = {0}> { y = Slice(x, s, e, z, s) }"""
    assert verdict_on(given, made, n=1).status == "equal"
    assert field_compare(model(given), model(made)).status == "differs"


def test_nodes_may_come_in_any_order() -> None:
    text = model("g (float[2] x) => (float[2] y) { t = Neg(x) y = Relu(t) }")
    turned = onnx.ModelProto.FromString(text.SerializeToString())
    del turned.graph.node[:]
    turned.graph.node.extend(reversed(text.graph.node))
    assert field_compare(text, turned).status == "equal"


def test_defaults_may_be_replaced() -> None:
    """A default that was folded away is not what a caller may give."""
    kept = model("g (float[2] x, float[2] k) => (float[2] y) { y = Add(x, k) }")
    kept.graph.initializer.append(numpy_helper.from_array(np.zeros(2, np.float32), "k"))
    folded = onnx.ModelProto.FromString(kept.SerializeToString())
    folded.graph.node[0].CopyFrom(helper.make_node("Identity", ["x"], ["y"]))
    assert field_compare(kept, folded).status == "differs"


def test_a_default_that_steers_stays() -> None:
    text = "g (float[1,1,2,2] x, float[4] s) => (float[a,b,c,d] y) { y = Resize(x, , s) }"
    given = model(text)
    scales = np.array([1, 1, 2, 2], np.float32)
    given.graph.initializer.append(numpy_helper.from_array(scales, "s"))
    assert field_compare(given, given).status == "equal"


def test_indexes_fit_their_tables() -> None:
    text = "g (int64[n] i) => (float[n,2] y) <float[2,2] t = {1, 2, 3, 4}> { y = Gather(t, i) }"
    made = text.replace("{1, 2, 3, 4}", "{1, 2, 3, 5}")
    assert field_compare(model(text), model(text)).status == "equal"
    assert status_of(text, made, n=32) == "differs"


def test_constants_are_what_the_model_computes_of_them() -> None:
    """Arithmetic on constants is that of floats, so a folded constant is the same one."""
    given = """g (float[2] x) => (float[2] y) <float k = {3.0}> {
        r = Sqrt(k) i = Reciprocal(r) y = Mul(x, i) }"""
    root = np.reciprocal(np.sqrt(np.float32(3)))
    made = f"g (float[2] x) => (float[2] y) <float k = {{{root!r}}}> {{ y = Mul(x, k) }}"
    folded = model(made.replace("np.float32(", "").replace(")}", "}"))
    assert field_compare(model(given), folded).status == "equal"


def test_a_folded_scale_differs_by_its_rounding() -> None:
    """Which is why 'differs' is not 'wrong'."""
    given = """g (float[2,1] x) => (float[2,1] y) <float[1,1] w = {0.1}, float k = {0.3}> {
        p = MatMul(x, w) y = Mul(p, k) }"""
    made = "g (float[2,1] x) => (float[2,1] y) <float[1,1] w = {0.03}> { y = MatMul(x, w) }"
    assert status_of(given, made) == "differs"


def test_quantisers_are_functions_of_number_scale_and_zero_point() -> None:
    text = """g (float[2,3] x) => (float[a,b] y) <float s = {0.5}, uint8 z = {3}> {
        q = QuantizeLinear(x, s, z) y = DequantizeLinear(q, s, z) }"""
    turned = """g (float[2,3] x) => (float[a,b] y) <float s = {0.5}, uint8 z = {3}> {
        t = Transpose(x) q = QuantizeLinear(t, s, z) u = Transpose(q)
        y = DequantizeLinear(u, s, z) }"""
    assert status_of(text, turned) == "equal"
    assert status_of(text, text.replace("z = {3}", "z = {4}")) == "differs"
    assert status_of(text, "g (float[2,3] x) => (float[a,b] y) { y = Identity(x) }") == "differs"


def test_contrib_products_are_those_of_the_standard() -> None:
    given = """g (float[2,3,4] x, float[2,3,5] w) => (float[a,b,c] y) {
        t = Transpose<perm=[0,2,1]>(x) y = MatMul(t, w) }"""
    made = """g (float[2,3,4] x, float[2,3,5] w) => (float[a,b,c] y) {
        y = com.microsoft.FusedMatMul<transA=1>(x, w) }"""
    assert status_of(given, made) == "equal"
    assert status_of(given, made.replace("transA=1", "transA=1, alpha=2.0")) == "differs"


@pytest.mark.parametrize(("flags", "perm"), [("", "[1,0,2]"), ("transA=1, ", "[1,2,0]")])
def test_contrib_products_move_their_batches(flags: str, perm: str) -> None:
    head = "g (float[4,2,4] x, float[2,4,5] w) => (float[a,b,c] y)"
    given = f"{head} {{ t = Transpose<perm={perm}>(x) y = MatMul(t, w) }}"
    made = f"{head} {{ y = com.microsoft.FusedMatMul<{flags}transBatchA=1>(x, w) }}"
    assert status_of(given, made) == "equal"


def test_attention_is_the_one_of_its_parts() -> None:
    given = """g (float[2,3,8] q, float[2,5,8] k, float[2,5,8] v) => (float[a,b,c] y)
        <int64[4] s = {0, 0, 2, 4}, int64[3] j = {0, 0, 8}, float h = {0.5}> {
        q4 = Reshape(q, s) k4 = Reshape(k, s) v4 = Reshape(v, s)
        qt = Transpose<perm=[0,2,1,3]>(q4) kt = Transpose<perm=[0,2,3,1]>(k4)
        vt = Transpose<perm=[0,2,1,3]>(v4) p = MatMul(qt, kt) m = Mul(p, h)
        w = Softmax<axis=-1>(m) o = MatMul(w, vt) t = Transpose<perm=[0,2,1,3]>(o)
        y = Reshape(t, j) }"""
    made = """g (float[2,3,8] q, float[2,5,8] k, float[2,5,8] v) => (float[a,b,c] y) {
        y = com.microsoft.MultiHeadAttention<num_heads=2, scale=0.5>(q, k, v) }"""
    assert status_of(given, made) == "equal"
    assert status_of(given, made.replace("num_heads=2", "num_heads=4")) == "differs"
    standard = made.replace(
        "com.microsoft.MultiHeadAttention<num_heads=2", "Attention<q_num_heads=2, kv_num_heads=2"
    )
    pair = [
        onnx.ModelProto.FromString(model(text).SerializeToString()) for text in (given, standard)
    ]
    for each in pair:
        each.opset_import[0].version = 23
    assert field_compare(*pair).status == "equal"
