"""Reshapes stand outside of what runtimes compute as one."""

from __future__ import annotations

import pytest

from relayout.ops.registry import names_of
from tests.rewrite.rewriting import assert_kept, assert_rewrites

WINDOWS = "float[2,3,1,1] w = {1,0,-1,0,1,0}, float s = {0.5}, uint8 z = {1}"
FOLD = "int64[4] fold = {-1,3,1,7}"
UNFOLD = "int64[4] unfold = {-1,2,2,7}"


def test_bytes_are_reshaped_before_they_are_made_real() -> None:
    assert_rewrites(
        f"""g (uint8[N,5,3,7] x) => (float[M,2,1,7] y) <{WINDOWS}, {FOLD}> {{
            d = DequantizeLinear(x, s, z)
            r = Reshape(d, fold)
            y = Conv(r, w)
        }}""",
        f"""g (uint8[N,5,3,7] x) => (float[M,2,1,7] y) <{WINDOWS}, {FOLD}> {{
            r = Reshape(x, fold)
            d = DequantizeLinear(r, s, z)
            y = Conv(d, w)
        }}""",
    )


def test_numbers_that_others_read_too() -> None:
    assert_rewrites(
        f"""g (uint8[N,5,3,7] x) => (float[M,2,1,7] y, float[N,5,3,7] e) <{WINDOWS}, {FOLD}> {{
            d = DequantizeLinear(x, s, z)
            r = Reshape(d, fold)
            y = Conv(r, w)
            e = Exp(d)
        }}""",
        f"""g (uint8[N,5,3,7] x) => (float[M,2,1,7] y, float[N,5,3,7] e) <{WINDOWS}, {FOLD}> {{
            r = Reshape(x, fold)
            d = DequantizeLinear(r, s, z)
            a = DequantizeLinear(x, s, z)
            y = Conv(d, w)
            e = Exp(a)
        }}""",
    )


ACTIVATIONS = names_of(lambda facts: facts.numbers.activates)


@pytest.mark.parametrize("activation", [None, *ACTIVATIONS])
def test_a_result_is_quantised_before_it_is_reshaped(activation: str | None) -> None:
    before = "" if activation is None else f"a = {activation}(r)"
    after = "" if activation is None else f"a = {activation}(c)"
    last, joined = ("r", "c") if activation is None else ("a", "a")
    assert_rewrites(
        f"""g (float[M,3,1,7] x) => (uint8[N,2,2,7] y) <{WINDOWS}, {UNFOLD}> {{
            c = Conv(x, w)
            r = Reshape(c, unfold)
            {before}
            y = QuantizeLinear({last}, s, z)
        }}""",
        f"""g (float[M,3,1,7] x) => (uint8[N,2,2,7] y) <{WINDOWS}, {UNFOLD}> {{
            c = Conv(x, w)
            {after}
            q = QuantizeLinear({joined}, s, z)
            y = Reshape(q, unfold)
        }}""",
    )


@pytest.mark.parametrize(
    ("result", "last"),
    [
        ("float[N,2,2,7]", "y = Exp(r)"),
        ("uint8[N,2,2,7]", "y = QuantizeLinear<axis=2>(r, each, zeros)"),
        ("float[N,2,2,7]", "a = Relu(r) y = Add(a, r)"),
        ("float[N,2,2,7]", "e = Exp(x) f = Reshape(e, unfold) y = Relu(f)"),
    ],
    ids=["no activation", "a scale for each channel", "two readers", "no product"],
)
def test_what_belongs_to_no_product_stays(result: str, last: str) -> None:
    is_product = "e = Exp(x)" not in last
    product = "c = Conv(x, w) r = Reshape(c, unfold)" if is_product else ""
    channels = 3 if is_product else 2
    assert_kept(
        f"""g (float[M,{channels},1,7] x) => ({result} y)
        <{WINDOWS}, {UNFOLD}, float[2] each = {{0.5, 0.25}}, uint8[2] zeros = {{1, 2}}> {{
            {product}
            {last}
        }}"""
    )


def test_a_reshape_between_quantisers_stays() -> None:
    assert_kept(
        f"""g (uint8[N,5,3,7] x) => (uint8[M,3,1,7] y) <{WINDOWS}, {FOLD}> {{
            d = DequantizeLinear(x, s, z)
            r = Reshape(d, fold)
            y = QuantizeLinear(r, s, z)
        }}"""
    )
