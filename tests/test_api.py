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
