"""Block moves whose Transposes stand apart from them, as exporters write dilated convolutions."""

from __future__ import annotations

import pytest

from relayout.api import optimize
from tests.rewrite.rewriting import parse


@pytest.mark.parametrize("minimize", ["bytes", "count"])
def test_one_transpose_stands_for_a_block_move_between_two(minimize: str) -> None:
    """As many images as there are blocks are convolved; what was padded is cut off again."""
    given = parse("""g (float[N,4,30,40] x, float[4,4,3,3] w) => (float[N,4,29,40] y) {
      a = Transpose<perm=[1,0,2,3]>(x) b = SpaceToDepth<blocksize=5>(a)
      c = Transpose<perm=[1,0,2,3]>(b) d = Conv<pads=[1,1,1,1]>(c, w)
      e = Transpose<perm=[1,0,2,3]>(d) f = DepthToSpace<blocksize=5>(e)
      starts = Constant<value_ints=[0,0]>() ends = Constant<value_ints=[29,40]>()
      axes = Constant<value_ints=[2,3]>() s = Slice(f, starts, ends, axes)
      t = Transpose<perm=[1,0,2,3]>(s) y = Relu(t) }""")
    result = optimize(given, minimize=minimize, max_rank=6)
    assert (result.before.transposes, result.after.transposes) == (4, 2)
    assert result.accepted
    assert not optimize(result.model, minimize=minimize, verify=False).changed


def test_a_block_move_alone_stays_one() -> None:
    given = parse("""g (float[2,12,3,5] x) => (float[2,6,10,3] y) {
      a = DepthToSpace<blocksize=2>(x) y = Transpose<perm=[0,2,3,1]>(a) }""")
    result = optimize(given, minimize="count")
    assert result.after.transposes == 1
    assert result.accepted
