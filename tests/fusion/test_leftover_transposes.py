"""Transposes that are left, next to pointwise chains: the groups that TVM makes of them."""

from __future__ import annotations

import pytest

from tests.fusion.grouping import grouped, groups

IMAGE = "float[2,4,6,5]"
MOVED = "float[2,6,5,4]"


@pytest.mark.parametrize(
    ("body", "output", "expected"),
    [
        ("a = Relu(x) b = Transpose<perm=[0,2,3,1]>(a) y = Exp(b)", MOVED, ["a b y"]),
        ("a = Conv(x, w) b = Relu(a) c = Transpose<perm=[0,2,3,1]>(b) y = Relu(c)", MOVED,
         ["a b", "c y"]),
        ("a = Conv(x, w) y = Transpose<perm=[0,2,3,1]>(a)", MOVED, ["a", "y"]),
        ("a = Transpose<perm=[0,2,3,1]>(x) b = Relu(a) y = ReduceSum(b, last)",
         "float[2,6,5,1]", ["a", "b y"]),
    ],
    ids=["pointwise", "after a convolution's chain", "after a convolution", "before a sum"],
)  # fmt: skip
def test_a_transpose_joins_pointwise_chains_only(
    body: str, output: str, expected: list[str]
) -> None:
    text = (
        f"""g ({IMAGE} x, float[4,4,1,1] w) => ({output} y) <int64[1] last = {{3}}> {{ {body} }}"""
    )
    assert groups(grouped(text, "tvm")) == expected
