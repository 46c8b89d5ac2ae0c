"""Weights take up the order of the features they are applied to."""

from __future__ import annotations

import pytest

from tests.rewrite.rewriting import assert_kept, assert_same_numbers, parse, rewritten, transposes

TO_NHWC = "Transpose<perm=[0,2,3,1]>"
FEATURES = 2 * 3 * 4
WEIGHT = f"float[{FEATURES},5] w = {{{','.join(str(i % 13 - 6) for i in range(FEATURES * 5))}}}"
TRANSPOSED = f"float[5,{FEATURES}] w = {{{','.join(str(i % 13 - 6) for i in range(FEATURES * 5))}}}"
VECTOR = f"float[{FEATURES}] v = {{{','.join(str(i % 11) for i in range(FEATURES))}}}"
ROW = f"float[1,{FEATURES}] r = {{{','.join(str(i % 7) for i in range(FEATURES))}}}"
ONE = "float[1] one = {2}"


def body(*lines: str, batch: str = "N", constants: str = WEIGHT, outputs: str = "") -> str:
    written = "\n".join(lines)
    return f"""g (float[{batch},2,3,4] x) => (float[{batch},5] y{outputs}) <{constants}> {{
        t = {TO_NHWC}(x)
        {written}
    }}"""


def assert_reordered(text: str) -> None:
    """No Transpose is left, and small integers are summed exactly in any order."""
    given = parse(text)
    result = rewritten(given)
    assert transposes(result) == 0
    assert_same_numbers(given, result, exact=True)


@pytest.mark.parametrize("batch", ["N", "3"])
@pytest.mark.parametrize(
    "merge",
    [
        "f = Flatten(t)",
        f"f = Reshape<allowzero=0>(t, s{FEATURES})",
        "f = Reshape(t, rest)",
        "f = Reshape(t, copied)",
    ],
)
def test_merged_features(merge: str, batch: str) -> None:
    shapes = (
        f"int64[2] s{FEATURES} = {{-1,{FEATURES}}}, int64[2] rest = {{0,-1}}, "
        f"int64[2] copied = {{0,{FEATURES}}}"
    )
    constants = f"{WEIGHT}, {shapes}"
    assert_reordered(body(merge, "y = MatMul(f, w)", batch=batch, constants=constants))


@pytest.mark.parametrize(
    ("product", "constants"),
    [
        ("y = MatMul(f, w)", WEIGHT),
        ("y = Gemm(f, w)", WEIGHT),
        ("y = Gemm<transB=1, alpha=2.0>(f, w)", TRANSPOSED),
        ("y = Gemm(f, w, c)", f"{WEIGHT}, float[5] c = {{1,2,3,4,5}}"),
    ],
)
def test_products_that_sum_features(product: str, constants: str) -> None:
    assert_reordered(body("f = Flatten(t)", product, constants=constants))


def test_what_is_between_is_reordered_too() -> None:
    constants = f"{WEIGHT}, {VECTOR}, {ROW}, {ONE}"
    assert_reordered(
        body(
            "f = Flatten(t)",
            "a = Relu(f)",
            "b = Add(v, a)",
            "c = Mul(b, r)",
            "d = Sub(one, c)",
            "e = Sub(d, v)",
            "y = MatMul(e, w)",
            constants=constants,
        )
    )


@pytest.mark.parametrize(
    ("lines", "outputs"),
    [
        (["f = Flatten(t)", "y = MatMul(f, w)"], f", float[N,{FEATURES}] f"),
        (["f = Flatten(t)", "y = MatMul(f, w)", "z = Neg(f)"], f", float[N,{FEATURES}] z"),
        (["f = Flatten(t)", "y = MatMul(f, w)"], ", float[N,3,4,2] t"),
        (["f = Flatten(t)", "s = Softmax(f)", "y = MatMul(s, w)"], ""),
        (["f = Flatten(t)", "s = Mul(f, f)", "y = MatMul(s, w)"], ""),
    ],
    ids=["an output", "another reader", "a transposed output", "no elementwise", "twice"],
)
def test_features_that_something_else_reads_stay(lines: list[str], outputs: str) -> None:
    assert_kept(body(*lines, outputs=outputs))


def test_weights_at_run_time_stay() -> None:
    assert_kept(
        f"""g (float[N,2,3,4] x, float[{FEATURES},5] w) => (float[N,5] y) {{
            t = {TO_NHWC}(x)
            f = Flatten(t)
            y = MatMul(f, w)
        }}"""
    )


def test_features_of_unknown_length_stay() -> None:
    assert_kept(
        f"""g (float[N,2,H,4] x) => (float[N,5] y) <{WEIGHT}> {{
            t = {TO_NHWC}(x)
            f = Flatten(t)
            y = MatMul(f, w)
        }}"""
    )


def test_a_batch_that_moves_stays() -> None:
    assert_kept(
        f"""g (float[2,N,3,4] x) => (float[N,5] y) <{WEIGHT}> {{
            t = Transpose<perm=[1,0,2,3]>(x)
            f = Flatten(t)
            y = MatMul(f, w)
        }}"""
    )


def test_rows_that_are_features_stay() -> None:
    """What is transposed again is summed over the batch, not over the features."""
    values = ",".join(str(i % 5) for i in range(FEATURES * 5))
    assert_kept(
        f"""g (float[{FEATURES},2,3,4] x) => (float[{FEATURES},5] y)
            <float[{FEATURES},5] w = {{{values}}}> {{
            t = {TO_NHWC}(x)
            f = Flatten(t)
            y = Gemm<transA=1>(f, w)
        }}"""
    )
