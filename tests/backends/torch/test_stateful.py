"""Operators that keep a state give what the standard says, in one call or in several."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

torch = pytest.importorskip("torch")

import relayout  # noqa: E402 - torch may be missing
from relayout.errors import RelayoutError  # noqa: E402

KEYS, VALUES = 3, 5
ATTENTION = """<ir_version: 11, opset_import: ["" : 27]>
g (TYPE[B,T,Q] q, TYPE[B,T,K] k, TYPE[B,T,V] v, TYPE[B,H,D,E] s, TYPE[B,T,L] d, TYPE[B,T,R] r)
  => (TYPE[B,T,O] y, TYPE[B,H,D,E] t) {
  y, t = LinearAttention <q_num_heads = QH, kv_num_heads = KH, update_rule = "RULE"> (GIVEN)
}"""
CONVOLUTION = """<ir_version: 11, opset_import: ["" : 27]>
g (float[B,C,T] x, float[C,1,K] w, float[C] b, float[B,C,P] p) => (float[B,C,T] y, float[B,C,P] s) {
  y, s = CausalConvWithState <activation = "NAME"> (GIVEN)
}"""


def _read(text: str, **settings: object) -> onnx.ModelProto:
    for name, setting in settings.items():
        text = text.replace(name, str(setting))
    return onnx.parser.parse_model(text)


def _numbers(seed: int, *shape: int) -> Any:
    return np.random.default_rng(seed).normal(0, 0.5, shape).astype(np.float32)


def _attention(rule: str, heads: int, groups: int, *, has_past: bool) -> onnx.ModelProto:
    places = ["s" * has_past, "d" * ("gated" in rule), "r" * ("delta" in rule)]
    given = ", ".join(["q", "k", "v", *(name or '""' for name in places)])
    sizes = {"QH": heads * groups, "KH": heads, "RULE": rule}
    return _read(ATTENTION, TYPE="float", GIVEN=given, **sizes)


def _feeds(heads: int, groups: int, steps: int, *, decays: int, rates: int) -> dict[str, Any]:
    return {
        "q": _numbers(1, 2, steps, heads * groups * KEYS),
        "k": _numbers(2, 2, steps, heads * KEYS),
        "v": _numbers(3, 2, steps, heads * VALUES),
        "s": _numbers(4, 2, heads, KEYS, VALUES),
        "d": -np.abs(_numbers(5, 2, steps, heads * decays)),
        "r": np.abs(_numbers(6, 2, steps, rates)),
    }


@pytest.mark.parametrize("rule", ["linear", "gated", "delta", "gated_delta"])
@pytest.mark.parametrize(("heads", "groups"), [(1, 1), (2, 1), (2, 3), (1, 4)])
@pytest.mark.parametrize("steps", [1, 6])
def test_linear_attention(rule: str, heads: int, groups: int, steps: int) -> None:
    """With a decay a head or a key, a rate a head or for all, with a past or without."""
    for has_past, decays, rates in ((True, KEYS, heads), (False, 1, 1)):
        model = _attention(rule, heads, groups, has_past=has_past)
        feeds = _feeds(heads, groups, steps, decays=decays, rates=rates)
        wanted = ReferenceEvaluator(model).run(None, feeds)
        found = relayout.compile(model, tune=False, verify=False)(feeds).values()
        for expected, got in zip(wanted, found, strict=True):
            np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)


def test_a_sequence_is_what_its_parts_are_one_after_the_other() -> None:
    compiled = relayout.compile(
        _attention("gated_delta", 2, 2, has_past=True), tune=False, verify=False
    )
    feeds = _feeds(2, 2, 7, decays=KEYS, rates=2)
    whole = compiled(feeds)
    state, parts = feeds["s"], []
    for first, last in ((0, 3), (3, 3), (3, 7)):
        part = {name: x[:, first:last] for name, x in feeds.items() if name != "s"}
        result = compiled({**part, "s": state})
        state = result["t"]
        parts.append(result["y"])
    np.testing.assert_allclose(np.concatenate(parts, 1), whole["y"], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(state, whole["t"], rtol=1e-5, atol=1e-6)


def test_a_rule_without_its_operands_is_refused() -> None:
    given = 'q, k, v, s, "", r'
    model = _read(ATTENTION, TYPE="float", QH=2, KH=2, RULE="gated_delta", GIVEN=given)
    with pytest.raises(RelayoutError, match="not those of the rule 'gated_delta'"):
        relayout.compile(model, tune=False, verify=False)


@pytest.mark.parametrize("name", ["none", "silu", "swish"])
@pytest.mark.parametrize("given", ["x, w", "x, w, b", 'x, w, "", p', "x, w, b, p"])
@pytest.mark.parametrize(("size", "steps"), [(4, 6), (4, 2), (1, 3)])
def test_causal_convolutions(name: str, given: str, size: int, steps: int) -> None:
    model = _read(CONVOLUTION, NAME=name, GIVEN=given)
    feeds = {
        "x": _numbers(1, 2, 3, steps),
        "w": _numbers(2, 3, 1, size),
        "b": _numbers(3, 3),
        "p": _numbers(4, 2, 3, size - 1),
    }
    wanted = ReferenceEvaluator(model).run(None, feeds)
    found = relayout.compile(model, tune=False, verify=False)(feeds).values()
    for expected, got in zip(wanted, found, strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)
