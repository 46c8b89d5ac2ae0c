"""What `optimize` promises whatever it is asked to save."""

from __future__ import annotations

import pytest

import relayout
from tests.rewrite.rewriting import parse

SMALL_PARTS_OF_A_LARGE_TENSOR = """
    g (float[64,64] x) => (float[2,64] a, float[2,64] b, float[2,64] c)
    <int64[1] zero = {0}, int64[1] two = {2}, int64[1] four = {4}, int64[1] six = {6}>
    { t = Transpose<perm=[1,0]>(x)
      a = Slice(t, zero, two, zero) b = Slice(t, two, four, zero) c = Slice(t, four, six, zero) }"""


def test_fewer_bytes_never_take_more_transposes_than_given() -> None:
    """Three small copies would move a tenth of the bytes; the user asked for no more Transposes."""
    result = relayout.optimize(parse(SMALL_PARTS_OF_A_LARGE_TENSOR), minimize="bytes")
    assert result.after.transposes == 1
    assert result.after.bytes_moved == result.before.bytes_moved
    assert any("3 Transposes" in notice for notice in result.loaded.notices)


@pytest.mark.parametrize("minimize", ["bytes", "count"])
def test_neither_figure_grows(minimize: str) -> None:
    result = relayout.optimize(parse(SMALL_PARTS_OF_A_LARGE_TENSOR), minimize=minimize)
    assert not result.trades


SHARED_BY_PRODUCTS = """
    g (float[64,64] x, float[3,64,64] p, float[3,64,64] q, float[3,64,64] k) =>
      (float[2,64] a, float[2,64] b, float[2,64] c, float[3,64,64] y, float[3,64,64] z)
    <int64[1] zero = {0}, int64[1] two = {2}, int64[1] four = {4}, int64[1] six = {6}>
    { t = Transpose<perm=[1,0]>(x) u = Transpose<perm=[1,0]>(x) v = Transpose<perm=[1,0]>(x)
      a = Slice(t, zero, two, zero) b = Slice(u, two, four, zero) c = Slice(v, four, six, zero)
      w = Transpose<perm=[0,2,1]>(k) y = MatMul(p, w) z = MatMul(q, w) }"""


def test_products_that_would_copy_more_as_einsum_stay_products() -> None:
    """Both would copy what one Transpose turns for them; of the rest the fewest still stay."""
    result = relayout.optimize(parse(SHARED_BY_PRODUCTS), minimize="count")
    assert not result.trades
    assert result.after.transposes == 2
    assert any("no product was stated as Einsum" in notice for notice in result.loaded.notices)
