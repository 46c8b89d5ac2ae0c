"""A quantised factor of a product loses its batch axes of length 1."""

from __future__ import annotations

import pytest

from tests.rewrite.rewriting import assert_kept, assert_rewrites


def product(
    shape: str,
    axis: str,
    *,
    left: str = "2,3,5,2",
    scale: str = "float[3] s = {0.5, 1, 2}, int8[3] z = {0, 1, 2}",
) -> str:
    return f"""g (float[{left}] x) => (float[2,3,5,3] y)
        <int8[{shape}] w = {{1, -2, 3, -4, 5, -6}}, {scale}> {{
        v = DequantizeLinear{axis}(w, s, z)
        y = MatMul(x, v)
    }}"""


ONE_SCALE = "float s = {0.5}, int8 z = {1}"


@pytest.mark.parametrize("axis", [3, -1])
def test_a_scale_per_column_follows(axis: int) -> None:
    assert_rewrites(product("1,1,2,3", f"<axis={axis}>"), product("2,3", "<axis=1>"))


def test_a_scale_per_row_follows() -> None:
    rows = "float[2] s = {0.5, 1}, int8[2] z = {0, 1}"
    assert_rewrites(
        product("1,1,2,3", "<axis=2>", scale=rows), product("2,3", "<axis=0>", scale=rows)
    )


def test_one_scale() -> None:
    assert_rewrites(product("1,2,3", "", scale=ONE_SCALE), product("2,3", "", scale=ONE_SCALE))


def test_what_has_axes_that_the_other_factor_lacks_keeps_them() -> None:
    text = product("1,1,2,3", "", left="5,2", scale=ONE_SCALE)
    assert_kept(text.replace("float[2,3,5,3] y", "float[1,1,5,3] y"))


def test_a_real_batch_stays() -> None:
    assert_kept(
        """g (float[2,5,2] x) => (float[2,5,3] y)
        <int8[2,2,3] w = {1, -2, 3, -4, 5, -6, 7, 8, 9, 1, 2, 3}, float s = {0.5}, int8 z = {1}> {
            v = DequantizeLinear(w, s, z)
            y = MatMul(x, v)
        }"""
    )


def test_what_others_read_stays() -> None:
    assert_kept(
        """g (float[2,5,2] x) => (float[2,5,3] y, float[1,2,3] a)
        <int8[1,2,3] w = {1, -2, 3, -4, 5, -6}, float s = {0.5}, int8 z = {1}> {
            v = DequantizeLinear(w, s, z)
            y = MatMul(x, v)
            a = Relu(v)
        }"""
    )
