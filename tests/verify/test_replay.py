"""Decisions that rounding flips are replayed; wrong models are found all the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from relayout.verify.numeric import compare
from relayout.verify.verdict import NumericVerdict

HEADER = '<ir_version: 8, opset_import: ["" : 17]>\n'
WHOLE = "m = MatMul(x, w)"
HALVES = """x1, x2 = Split<axis=1>(x)
    w1, w2 = Split<axis=0>(w)
    m1 = MatMul(x2, w2)
    m2 = MatMul(x1, w1)
    m = Add(m1, m2)"""
"""The same product, added up in another order."""
UNEVEN = """parts = Constant<value_ints=[24, 40]>()
    x3, x4 = Split<axis=1>(x, parts)
    w3, w4 = Split<axis=0>(w, parts)
    n1 = MatMul(x3, w3)
    n2 = MatMul(x4, w4)
    n = Add(n1, n2)"""

# Each decides between two numbers that are equal but for rounding.
DECISIONS = {
    "ArgMax": "c = ArgMax<axis=2, keepdims=0>(both) y = Cast<to=1>(c)",
    "ArgMin": "c = ArgMin<axis=-1>(both) k = Cast<to=1>(c) y = Squeeze(k, two)",
    "TopK": "v, c = TopK<axis=2>(both, one) k = Cast<to=1>(c) y = Squeeze(k, two)",
    "Hardmax": "k = Hardmax<axis=2>(both) y, z = Split<axis=2, num_outputs=2>(k)",
    "Greater": "c = Greater(m, n) y = Cast<to=1>(c)",
    "LessOrEqual": "c = LessOrEqual(m, n) y = Where(c, m, big)",
    "Equal": "c = Equal(m, n) y = Where(c, m, big)",
    "Floor": "c = Floor(s) y = Mul(c, big)",
    "Ceil": "c = Ceil(s) y = Mul(c, big)",
    "Round": "h = Add(s, half) c = Round(h) y = Mul(c, big)",
    "Sign": "c = Sign(s) y = Mul(c, big)",
    "Cast": "c = Cast<to=9>(s) y = Where(c, m, big)",
}


def saved(path: Path, text: str, weight: np.ndarray | None = None) -> Path:
    model = onnx.parser.parse_model(HEADER + text)
    if weight is None:
        weight = np.random.default_rng(0).standard_normal((64, 8)).astype(np.float32)
    model.graph.initializer.append(numpy_helper.from_array(weight, "w"))
    near = np.arange(32 * 8).reshape(32, 8) % 5 == 0
    model.graph.initializer.append(numpy_helper.from_array(near, "near"))
    onnx.save(model, path)
    return path


def deciding(
    path: Path, op_type: str, stated: str, bias: float = 0.0, weight: np.ndarray | None = None
) -> Path:
    decision = DECISIONS[op_type].replace(", num_outputs=2", "")
    text = f"""g (float[32,64] x) => (y) <
        int64[1] one = {{1}}, int64[1] two = {{2}}, float big = {{100}}, float half = {{0.5}},
        float bias = {{{bias}}}> {{
        {stated}
        {UNEVEN}
        m3 = Unsqueeze(m, two)
        n3 = Unsqueeze(n, two)
        both = Concat<axis=2>(m3, n3)
        d = Sub(m, n)
        s = Where(near, d, m)
        {decision}
    }}"""
    if bias:
        text = text.replace("n = Add(n1, n2)", "n0 = Add(n1, n2) n = Add(n0, bias)")
    return saved(path, text, weight)


@pytest.mark.parametrize("op_type", DECISIONS)
def test_a_decision_that_rounding_flips_is_replayed(tmp_path: Path, op_type: str) -> None:
    before = deciding(tmp_path / "a.onnx", op_type, WHOLE)
    verdict = compare(before, deciding(tmp_path / "b.onnx", op_type, HALVES))
    assert verdict.equal
    assert verdict.replayed is not None
    assert verdict.replayed.flipped > 0
    assert "by rounding" in verdict.summary()
    assert NumericVerdict.from_json(verdict.to_json()) == verdict


@pytest.mark.parametrize("op_type", DECISIONS)
def test_a_wrong_decision_is_found(tmp_path: Path, op_type: str) -> None:
    before = deciding(tmp_path / "a.onnx", op_type, WHOLE)
    wrong = deciding(tmp_path / "b.onnx", op_type, HALVES, bias=-0.75)
    verdict = compare(before, wrong)
    assert verdict.status == "differs"
    assert verdict.not_replayed
    assert "not for flipped decisions" in verdict.summary()


def test_a_decision_on_a_permuted_constant_is_found(tmp_path: Path) -> None:
    weight = np.random.default_rng(0).standard_normal((64, 8)).astype(np.float32)
    swapped = weight[[1, 0, *range(2, 64)]]
    text = """g (float[32,64] x) => (float[32,8] y) {
        m = MatMul(x, w)
        c = ArgMax<axis=1>(m)
        f = Cast<to=1>(c)
        y = Mul(m, f)
    }"""
    before = saved(tmp_path / "a.onnx", text, weight)
    assert compare(before, saved(tmp_path / "b.onnx", text, swapped)).status == "differs"


def test_a_decision_along_another_axis_of_equal_length_is_found(tmp_path: Path) -> None:
    def model(path: Path, axis: int) -> Path:
        text = f"""g (float[8,64] x) => (float[8] y) {{
            m = MatMul(x, w)
            c = ArgMax<axis={axis}, keepdims=0>(m)
            y = Cast<to=1>(c)
        }}"""
        return saved(path, text)

    verdict = compare(model(tmp_path / "a.onnx", 0), model(tmp_path / "b.onnx", 1))
    assert verdict.status == "differs"
    assert verdict.not_replayed == "decision 'c' is not flipped by rounding"


def looping(path: Path, stated: str, *, gain: float, decision: bool, wrong: str = "") -> Path:
    """A state that amplifies rounding from round to round, with or without decisions."""
    chosen = "c = ArgMax<axis=1>(s) f = Cast<to=1>(c) t = Add(s, f)" if decision else ""
    last = "t" if decision else "s"
    text = f"""g (float[4,64] x) => (float[4,8] y) <
        int64 rounds = {{40}}, bool on = {{1}}, float gain = {{{gain}}}> {{
        {stated}
        y = Loop(rounds, on, m) <body = b (int64 i, bool d, float[4,8] v) =>
            (bool o, float[4,8] r) {{
                o = Identity(d)
                p = Mul(v, gain)
                s = Sin(p)
                {chosen}
                {wrong}
                r = Identity({"u" if wrong else last})
            }}>
    }}"""
    return saved(path, text)


@pytest.mark.parametrize("decision", [True, False])
@pytest.mark.parametrize("gain", [5.0, 50.0])
def test_feedback_is_replayed_round_by_round(tmp_path: Path, gain: float, decision: bool) -> None:
    before = looping(tmp_path / "a.onnx", WHOLE, gain=gain, decision=decision)
    after = looping(tmp_path / "b.onnx", HALVES, gain=gain, decision=decision)
    verdict = compare(before, after)
    assert verdict.equal
    assert gain < 50 or verdict.replayed is not None
    last = "t" if decision else "s"
    wrong = f"z = Constant<value_float=1.001>() u = Mul({last}, z)"
    after = looping(tmp_path / "c.onnx", HALVES, gain=gain, decision=decision, wrong=wrong)
    assert compare(before, after).status == "differs"


def test_boxes_that_rounding_drops_are_replayed(tmp_path: Path) -> None:
    """Two boxes overlap by exactly what is allowed, but for rounding."""

    def model(path: Path, stated: str, threshold: float = 0.0) -> Path:
        text = f"""g (float[32,64] x) => (float[] y) <
            float[1,4,4] boxes = {{0,0,1,1, 5,5,6,6, 9,9,10,10, 20,20,21,21}},
            int64 most = {{8}}, float iou = {{0.5}}, float least = {{{threshold}}},
            int64[3] form = {{1,64,4}}> {{
            {stated}
            {UNEVEN}
            d = Sub(m, n)
            s0 = Where(near, d, m)
            s = Reshape(s0, form)
            k = NonMaxSuppression(boxes, s, most, iou, least)
            f = Cast<to=1>(k)
            y = ReduceSum<keepdims=0>(f)
        }}"""
        return saved(path, text)

    before = model(tmp_path / "a.onnx", WHOLE)
    verdict = compare(before, model(tmp_path / "b.onnx", HALVES))
    assert verdict.equal
    assert verdict.replayed is not None
    assert compare(before, model(tmp_path / "c.onnx", HALVES, -0.5)).status == "differs"
