"""What is written channels last has all the kernels there are, so that a second run finds none."""

from __future__ import annotations

import onnx
import pytest

from relayout.api import optimize
from tests.rewrite.rewriting import assert_same_numbers, parse

WEIGHTS = """float[3,3,1,1] w = {1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0},
  float[5,5] m = {1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0,
    8.0, 9.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0},
  int64[6] s = {2, 1, 2, 2, 6, 8}, int64[4] t = {2, 1, 12, 16}"""
PRODUCT = """(float[2,3,1,5] x) => (float[2,3,1,5] y) <{}>
  {{ a = Conv(x, w) b1 = MatMul(a, m) y = Conv(b1, w) }}"""
BLOCKS = """(float[2,4,6,8] x, float[2,3,4,5] z) => (float[2,1,12,16] y, float[2,3,4,5] u) <{}>
  {{ a = Reshape(x, s) b1 = Transpose<perm=[0,1,4,2,5,3]>(a) y = Reshape(b1, t)
     c1 = Conv(z, w) u = Conv(c1, w) }}"""


def _kinds(model: onnx.ModelProto) -> list[str]:
    return [node.op_type for node in model.graph.node]


@pytest.mark.parametrize("text", [PRODUCT, BLOCKS], ids=["product", "blocks"])
@pytest.mark.parametrize("minimize", ["bytes", "count"])
def test_no_operator_is_written_that_lacks_a_kernel(text: str, minimize: str) -> None:
    """Neither a product becomes a convolution channels first, nor a Transpose a block move."""
    given = parse("g " + text.format(WEIGHTS))
    once = optimize(given, target="nhwc", minimize=minimize)
    assert once.lacking[1] == 0
    assert not {"Conv", "DepthToSpace"}.intersection(_kinds(once.model))
    assert not optimize(once.model, target="nhwc", minimize=minimize).changed
    assert_same_numbers(given, once.model, exact=False)


def test_the_target_without_kernels_still_takes_both() -> None:
    wrapped = """(float[2,5,1,3] x) => (float[2,5,1,3] y) <{}>
      {{ a = Transpose<perm=[0,3,2,1]>(x) b1 = MatMul(a, m) y = Transpose<perm=[0,3,2,1]>(b1) }}"""
    assert _kinds(optimize(parse("g " + wrapped.format(WEIGHTS))).model) == ["Conv"]
    kinds = _kinds(optimize(parse("g " + BLOCKS.format(WEIGHTS))).model)
    assert kinds == ["DepthToSpace", "Conv", "Conv"]
