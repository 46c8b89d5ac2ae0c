"""Activations that exporters spell out become one operator, and others stay."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir as ir
import pytest

from relayout.rewrite.activations import RaiseGelu, RaiseSilu
from relayout.rewrite.dead import remove_dead
from relayout.rewrite.worklist import rewrite_model
from tests.ops import law
from tests.rewrite.rewriting import parse, to_ir

CONSTANTS = (
    "<float r = {1.41421356}, float i = {0.70710678}, float h = {0.5}, float one = {1.0},"
    " float two = {2.0}, float three = {3.0}>"
)
GELUS = {
    "divided": "d = Div(x, r) e = Erf(d) a = Add(e, one) m = Mul(x, a) y = Mul(m, h)",
    "multiplied": "d = Mul(x, i) e = Erf(d) a = Add(one, e) m = Mul(a, x) y = Mul(h, m)",
    "half of x": "k = Mul(x, h) d = Div(x, r) e = Erf(d) a = Add(e, one) y = Mul(k, a)",
    "half of the sum": "d = Div(x, r) e = Erf(d) a = Add(e, one) m = Mul(a, h) y = Mul(x, m)",
    "over two": "d = Div(x, r) e = Erf(d) a = Add(e, one) m = Mul(x, a) y = Div(m, two)",
    "half over two": "d = Div(x, r) e = Erf(d) a = Add(e, one) m = Div(a, two) y = Mul(m, x)",
}
OTHERS = {
    "another factor": "d = Div(x, two) e = Erf(d) a = Add(e, one) m = Mul(x, a) y = Mul(m, h)",
    "another shift": "d = Div(x, r) e = Erf(d) a = Add(e, two) m = Mul(x, a) y = Mul(m, h)",
    "no half": "d = Div(x, r) e = Erf(d) a = Add(e, one) m = Mul(x, a) y = Mul(m, three)",
    "another operand": "d = Div(x, r) e = Erf(d) a = Add(e, one) m = Mul(d, a) y = Mul(m, h)",
    "two over it": "d = Div(x, r) e = Erf(d) a = Add(e, one) m = Mul(x, a) y = Div(h, m)",
    "sigmoid of another": "d = Mul(x, h) s = Sigmoid(d) y = Mul(x, s)",
    "sigmoid squared": "s = Sigmoid(x) y = Mul(s, s)",
}


def raised(body: str) -> tuple[onnx.ModelProto, onnx.ModelProto]:
    given = parse(f"g (float[2,5] x) => (float[2,5] y) {CONSTANTS} {{ {body} }}")
    model = to_ir(given)
    rewrite_model(model, [RaiseGelu(), RaiseSilu()])
    remove_dead(model)
    return given, ir.to_proto(model)


def assert_same_numbers(given: onnx.ModelProto, result: onnx.ModelProto) -> None:
    feeds = {"x": np.linspace(-4.0, 4.0, 10, dtype=np.float32).reshape(2, 5)}
    (wanted,), (got,) = (law.run(model, feeds, "ort") for model in (given, result))
    np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)


def operators(model: onnx.ModelProto) -> list[str]:
    return [node.op_type for node in model.graph.node]


@pytest.mark.parametrize("body", GELUS.values(), ids=GELUS)
def test_gelu_is_one_operator(body: str) -> None:
    given, result = raised(body)
    assert operators(result) == ["Gelu"]
    assert result.graph.node[0].domain == "com.microsoft"
    assert_same_numbers(given, result)


@pytest.mark.parametrize("body", ["s = Sigmoid(x) y = Mul(x, s)", "s = Sigmoid(x) y = Mul(s, x)"])
def test_silu_is_one_operator(body: str) -> None:
    given, result = raised(body)
    assert operators(result) == ["QuickGelu"]
    assert_same_numbers(given, result)


@pytest.mark.parametrize("body", OTHERS.values(), ids=OTHERS)
def test_other_chains_stay(body: str) -> None:
    given, result = raised(body)
    assert operators(result) == operators(given)


def test_what_is_read_elsewhere_stays() -> None:
    body = GELUS["divided"]
    given = parse(
        f"g (float[2,5] x) => (float[2,5] y, float[2,5] a) {CONSTANTS} {{ {body} }}",
    )
    model = to_ir(given)
    rewrite_model(model, [RaiseGelu()])
    assert operators(ir.to_proto(model)) == operators(given)
