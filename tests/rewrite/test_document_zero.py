"""The graph rules document: its examples and its exercise."""

from __future__ import annotations

from relayout.targets.target import ORT
from tests.rewrite.rewriting import (
    assert_rewrites,
    canonical,
    parse,
    rewritten,
    transposes,
)


def test_e1_an_inverse_pair_goes() -> None:
    assert_rewrites(
        """g (float[2,3,4] a) => (float[2,3,4] y) {
            b = Transpose<perm=[0,2,1]>(a)
            c = Transpose<perm=[0,2,1]>(b)
            y = Relu(c)
        }""",
        "g (float[2,3,4] a) => (float[2,3,4] y) { y = Relu(a) }",
    )


def test_e2_and_e4_a_matrix_transpose_becomes_a_flag() -> None:
    assert_rewrites(
        """g (float[3,5] a, float[3,2] b) => (float[5,2] y) {
            t = Transpose<perm=[1,0]>(a)
            y = MatMul(t, b)
        }""",
        "g (float[3,5] a, float[3,2] b) => (float[5,2] y) { y = Gemm<transA=1>(a, b) }",
    )


def test_e3_a_pair_before_a_product_goes_and_flags_stay() -> None:
    assert_rewrites(
        """g (float[2,3,4] a, float[2,4,5] d) => (float[2,3,5] y) {
            b = Transpose<perm=[0,2,1]>(a)
            c = Transpose<perm=[0,2,1]>(b)
            y = MatMul(c, d)
        }""",
        "g (float[2,3,4] a, float[2,4,5] d) => (float[2,3,5] y) { y = MatMul(a, d) }",
        target=ORT,
    )


def test_e5_both_ways_of_taking_a_pair_reach_the_same_graph() -> None:
    """Merging the two Transposes into the product one by one toggles its flag twice."""
    pair = """g (float[3,5] a, float[5,2] b) => (float[3,2] y) {
        s = Transpose<perm=[1,0]>(a)
        t = Transpose<perm=[1,0]>(s)
        y = MatMul(t, b)
    }"""
    assert_rewrites(pair, "g (float[3,5] a, float[5,2] b) => (float[3,2] y) { y = MatMul(a, b) }")
    toggled = """g (float[3,5] a, float[5,2] b) => (float[3,2] y) {
        s = Transpose<perm=[1,0]>(a)
        y = Gemm<transA=1>(s, b)
    }"""
    assert_rewrites(toggled, "g (float[3,5] a, float[5,2] b) => (float[3,2] y) { y = Gemm(a, b) }")


EXERCISE = """g ({dtype}[2,3,4,5] i1, {dtype}[2,3,4,5] i2) => ({dtype}[2,3,4,4] o) {{
    t1 = Transpose<perm=[0,1,3,2]>(i1)
    t2 = Transpose<perm=[0,1,3,2]>(t1)
    t3 = Transpose<perm=[0,1,3,2]>(i2)
    o = MatMul(t2, t3)
}}"""


def test_the_exercise_ends_with_one_operator() -> None:
    result = rewritten(parse(EXERCISE.format(dtype="float")), ORT)
    assert canonical(result) == canonical(
        parse(
            """g (float[2,3,4,5] i1, float[2,3,4,5] i2) => (float[2,3,4,4] o) {
                o = com.microsoft.FusedMatMul<transB=1>(i1, i2)
            }"""
        )
    )
    assert transposes(result) == 0


def test_the_exercise_on_integers_keeps_the_one_that_no_kernel_takes() -> None:
    """There is no product with flags for unsigned integers of rank 4: one Transpose stays."""
    assert_rewrites(
        EXERCISE.format(dtype="uint32"),
        """g (uint32[2,3,4,5] i1, uint32[2,3,4,5] i2) => (uint32[2,3,4,4] o) {
            t = Transpose<perm=[0,1,3,2]>(i2)
            o = MatMul(i1, t)
        }""",
        target=ORT,
    )


def test_the_model_given_is_not_changed() -> None:
    model = parse(EXERCISE.format(dtype="float"))
    before = model.SerializeToString(deterministic=True)
    rewritten(model, ORT)
    assert model.SerializeToString(deterministic=True) == before
