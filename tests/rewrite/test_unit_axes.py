"""Transposes of one value that differ only in where axes of length 1 go copy its data once."""

from __future__ import annotations

import pytest

from relayout.api import optimize
from tests.rewrite.rewriting import as_given, assert_kept, assert_rewrites, parse


def test_the_second_is_a_reshape_of_the_first() -> None:
    assert_rewrites(
        """g (float[1,2,3,4] x) => (float[1,4,2,3] y, float[4,1,2,3] z) {
          y = Transpose<perm=[0,3,1,2]>(x)
          z = Transpose<perm=[3,0,1,2]>(x) }""",
        """g (float[1,2,3,4] x) => (float[1,4,2,3] y, float[4,1,2,3] z)
          <int64[4] s = {4, 1, 2, 3}> {
          y = Transpose<perm=[0,3,1,2]>(x)
          z = Reshape(y, s) }""",
    )


def test_the_same_shape_is_the_same_value() -> None:
    assert_rewrites(
        """g (float[1,1,2,3] x) => (float[1,1,3,2] y) {
          a = Transpose<perm=[0,1,3,2]>(x)
          b = Transpose<perm=[1,0,3,2]>(x)
          c = Relu(a)
          y = Add(c, b) }""",
        """g (float[1,1,2,3] x) => (float[1,1,3,2] y) {
          a = Transpose<perm=[0,1,3,2]>(x)
          c = Relu(a)
          y = Add(c, a) }""",
        choose=as_given,
    )


@pytest.mark.parametrize("shape", ["2,2,3,4", "N,2,3,4"])
def test_an_axis_that_may_be_longer_is_moved(shape: str) -> None:
    assert_kept(f"""g (float[{shape}] x) => (float[a,b,c,d] y, float[e,f,g,h] z) {{
      y = Transpose<perm=[0,3,1,2]>(x)
      z = Transpose<perm=[3,0,1,2]>(x) }}""")


@pytest.mark.parametrize("shape", [(2, 3, 5, 7), (1, 3, 1, 4)])
def test_one_transpose_is_enough_before_and_after_an_operator(shape: tuple[int, ...]) -> None:
    n, a, b, c = shape
    model = parse(f"""g (float[{n},{a},{b},{c}] x) => (float[{n},{c},{a},{b}] y,
      float[{n},{c},{a},{b}] z) {{
      y = Transpose<perm=[0,3,1,2]>(x)
      r = Relu(x)
      z = Transpose<perm=[0,3,1,2]>(r) }}""")
    result = optimize(model, minimize="count")
    assert (result.after.transposes, result.least) == (1, True)
