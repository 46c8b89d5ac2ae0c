"""Models with quantisers that differ only by rounding are equal; others are not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from relayout.verify.isolated import compare_isolated
from relayout.verify.numeric import compare
from relayout.verify.verdict import NumericVerdict
from tests.verify.models import plus

HEADER = '<ir_version: 10, opset_import: ["" : 21]>\n'

PRODUCT = "m = MatMul(d, v)"
IN_HALVES = """a, b = Split<axis=1, num_outputs=2>(d)
    e, f = Split<axis=0, num_outputs=2>(v)
    g = MatMul(b, f)
    h = MatMul(a, e)
    m = Add(g, h)"""
"""The same product, added up in another order."""


def saved(text: str, place: Path, **constants: object) -> Path:
    model = onnx.parser.parse_model(HEADER + text)
    for name, array in constants.items():
        model.graph.initializer.append(numpy_helper.from_array(np.asarray(array), name))
    onnx.save(model, place)
    return place


def product(place: Path, stated: str = PRODUCT, *, bias: float = 0.0, scale: float = 0.2) -> Path:
    """A product whose exact results may lie halfway between two steps of the last quantiser.

    Its factors are multiples of 0.1, which no float is, so that it is rounding that decides.
    ONNX Runtime at its extended level computes in bytes, and rounds to the even step.
    """
    text = f"""g (float[32,64] x) => (float[32,8] y)
        <float s = {{0.1}}, uint8 z = {{128}}, float one = {{1}}, int8 n = {{0}},
         float t = {{{scale}}}> {{
        q = QuantizeLinear(x, s, z)
        d = DequantizeLinear(q, s, z)
        v = DequantizeLinear(w, one, n)
        {stated}
        r = QuantizeLinear(m, t, z)
        p = DequantizeLinear(r, t, z)
        y = Add(p, bias)
    }}"""
    weight = np.random.default_rng(0).integers(-3, 4, (64, 8)).astype(np.int8)
    biases = np.zeros(8, np.float32)
    biases[3] = bias
    return saved(text, place, w=weight, bias=biases)


def looked_at_again(before: Path, after: Path) -> str:
    """Why results that differ are not taken for rounding."""
    verdict = compare(before, after)
    assert verdict.status == "differs"
    assert verdict.rounding is None
    assert f"; not taken for rounding at quantisers: {verdict.not_rounding}" in verdict.summary()
    return verdict.not_rounding


def test_steps_that_quantisers_make_of_rounding_are_not_a_difference(tmp_path: Path) -> None:
    before = product(tmp_path / "a.onnx")
    verdict = compare_isolated(before, product(tmp_path / "b.onnx", IN_HALVES))
    assert verdict.equal
    assert not verdict.exact
    assert verdict.rounding is not None
    largest_of_the_column = 23.2
    one_step = 0.2 / largest_of_the_column
    assert verdict.rounding.error == pytest.approx(one_step, rel=0.01)
    assert verdict.rounding.noise == pytest.approx(one_step, rel=0.01)
    assert verdict.summary() == (
        "equal but for rounding at quantisers: 8.6e-03, "
        "where ONNX Runtime's own levels differ by 8.6e-03: 1 output, 1 shape, 2 runs"
    )
    assert NumericVerdict.from_json(verdict.to_json()) == verdict


def test_a_wrong_bias_is_found_though_it_is_less_than_the_rounding(tmp_path: Path) -> None:
    """It is a quarter of a step; where nothing is rounded it is there all the same."""
    before = product(tmp_path / "a.onnx")
    for stated in (PRODUCT, IN_HALVES):
        after = product(tmp_path / "b.onnx", stated, bias=0.05)
        reason = looked_at_again(before, after)
        assert reason.startswith("without rounding output 'y' at [")


def test_a_wrong_weight_is_found_though_it_is_less_than_the_rounding(tmp_path: Path) -> None:
    before = product(tmp_path / "a.onnx")
    text = IN_HALVES.replace("m = Add(g, h)", "o = Add(g, h) m = Mul(o, u)")
    after = onnx.load(product(tmp_path / "b.onnx", text))
    after.graph.initializer.append(numpy_helper.from_array(np.array(1.002, np.float32), "u"))
    onnx.save(after, tmp_path / "b.onnx")
    assert looked_at_again(before, tmp_path / "b.onnx").startswith("without rounding output 'y'")


def test_other_quantisers_are_found(tmp_path: Path) -> None:
    before = product(tmp_path / "a.onnx")
    after = product(tmp_path / "b.onnx", scale=0.2001)
    assert looked_at_again(before, after) == "the quantisers are not the same"


def sums(place: Path, stated: str) -> Path:
    """Sums that every level of ONNX Runtime computes as they are stated."""
    text = f"""g (float[64,64] x) => (float[64] y)
        <float s = {{0.1}}, uint8 z = {{128}}, float t = {{0.2}}, int64[1] last = {{1}}> {{
        q = QuantizeLinear(x, s, z)
        d = DequantizeLinear(q, s, z)
        {stated}
        r = QuantizeLinear(m, t, z)
        y = DequantizeLinear(r, t, z)
    }}"""
    return saved(text, place)


HALVES = """a, b = Split<axis=1, num_outputs=2>(d)
    e = ReduceSum<keepdims=0>(a, last)
    f = ReduceSum<keepdims=0>(b, last)
    m = Add(e, f)"""


def test_steps_that_no_level_of_the_runtime_makes_are_replayed(tmp_path: Path) -> None:
    before = sums(tmp_path / "a.onnx", "m = ReduceSum<keepdims=0>(d, last)")
    verdict = compare_isolated(before, sums(tmp_path / "b.onnx", HALVES))
    assert verdict.equal
    assert verdict.replayed is not None
    assert verdict.replayed.flipped > 0
    assert "flip by rounding" in verdict.summary()
    assert NumericVerdict.from_json(verdict.to_json()) == verdict


def test_what_is_wrong_before_a_quantiser_is_not_replayed(tmp_path: Path) -> None:
    before = sums(tmp_path / "a.onnx", "m = ReduceSum<keepdims=0>(d, last)")
    wrong = HALVES.replace("m = Add(e, f)", "n = Add(e, f)  o = Mul(n, t)  m = Add(n, o)")
    verdict = compare(before, sums(tmp_path / "b.onnx", wrong))
    assert verdict.status == "differs"
    assert verdict.not_replayed == "decision 'r' is made on other numbers"


def test_what_has_no_smooth_version_differs(tmp_path: Path) -> None:
    def model(place: Path, offset: float) -> Path:
        text = """g (float[4,4] x) => (float[4,4] y) <float one = {1}, uint8 z = {128}> {
            q, s, o = DynamicQuantizeLinear(x)
            d = DequantizeLinear(q, s, o)
            y = Add(d, offset)
        }"""
        return saved(text, place, offset=np.float32(offset))

    reason = looked_at_again(model(tmp_path / "a.onnx", 0.0), model(tmp_path / "b.onnx", 0.1))
    assert reason == "DynamicQuantizeLinear computes in whole numbers"


def test_whole_numbers_computed_from_steps_are_replayed(tmp_path: Path) -> None:
    """Both models agree where nothing is rounded: results are multiples of half a step there."""
    counted = """h (float[32,8] p, float t) => (int64[32,8] c) {
        e1 = Div(p, t)
        e2 = Constant<value_float=SHIFT>()
        e3 = Add(e1, e2)
        e4 = Floor(e3)
        c = Cast<to=7>(e4)
    }"""

    def model(place: Path, stated: str, shift: float = 0.25) -> Path:
        made = onnx.load(product(place, stated))
        more = onnx.parser.parse_graph(counted.replace("SHIFT", str(shift)))
        made.graph.node.extend(more.node)
        made.graph.output.extend(more.output)
        onnx.save(made, place)
        return place

    before = model(tmp_path / "a.onnx", PRODUCT)
    assert compare(before, model(tmp_path / "b.onnx", IN_HALVES)).replayed is not None
    for stated in (PRODUCT, IN_HALVES):
        assert compare(before, model(tmp_path / "c.onnx", stated, 1.25)).status == "differs"


def test_models_without_quantisers_are_judged_once(tmp_path: Path) -> None:
    verdict = compare(plus(tmp_path / "a.onnx", 0.0), plus(tmp_path / "b.onnx", 1.0))
    assert verdict.status == "differs"
    assert not verdict.not_rounding
