"""Transposes of one value that differ only in where axes of length 1 go copy its data once."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest
from onnx.reference import ReferenceEvaluator

from relayout.api import optimize
from relayout.rewrite.unit_axes import ShareButForUnitAxes
from relayout.rewrite.worklist import rewrite_model
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


@pytest.mark.parametrize("length", [5, "N"])
@pytest.mark.parametrize("second", [(2, 3, 0, 1), (3, 0, 2, 1), (0, 3, 2, 1)])
def test_shapes_that_are_stated_of_the_operand_alone_are_enough(
    length: int | str, second: tuple[int, ...]
) -> None:
    """In bodies of functions nothing states what a Transpose gives."""
    given = parse(f"""g (float[1,2,1,{length}] x) => (float[a,b,c,d] y, float[e,f,g,h] z) {{
      p = Transpose<perm=[0,3,2,1]>(x)
      q = Transpose<perm={list(second)}>(x)
      y = Relu(p)
      z = Relu(q) }}""")
    model = ir.from_proto(given)
    assert rewrite_model(model, [ShareButForUnitAxes()]) or second == (0, 3, 2, 1)
    feeds = {"x": np.arange(10, dtype=np.float32).reshape(1, 2, 1, 5)}
    before, after = (
        ReferenceEvaluator(each).run(None, feeds) for each in (given, ir.to_proto(model))
    )
    for one, other in zip(before, after, strict=True):
        np.testing.assert_array_equal(other, one, strict=True)
