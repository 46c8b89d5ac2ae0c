"""Transposes around an Einsum go into its equation."""

from __future__ import annotations

import pytest

from relayout.layout.equation import Equation
from relayout.layout.permutation import Permutation
from tests.assign.layouting import assert_layouts
from tests.rewrite.rewriting import assert_kept, assert_rewrites


def test_a_transposed_operand_and_result() -> None:
    assert_rewrites(
        """g (float[2,3,4] q, float[2,5,4] k) => (float[2,5,3] y) {
            t = Transpose<perm=[0,2,1]>(k)
            s = Einsum<equation="bqd,bdk->bqk">(q, t)
            y = Transpose<perm=[0,2,1]>(s)
        }""",
        """g (float[2,3,4] q, float[2,5,4] k) => (float[2,5,3] y) {
            y = Einsum<equation="bqd,bkd->bkq">(q, k)
        }""",
    )


def test_every_operand_is_looked_at() -> None:
    assert_rewrites(
        """g (float[3,2] a, float[4,3] b, float[5,4] c) => (float[2,5] y) {
            ta = Transpose<perm=[1,0]>(a)
            tb = Transpose<perm=[1,0]>(b)
            tc = Transpose<perm=[1,0]>(c)
            y = Einsum<equation="ij,jk,kl->il">(ta, tb, tc)
        }""",
        """g (float[3,2] a, float[4,3] b, float[5,4] c) => (float[2,5] y) {
            y = Einsum<equation="ji,kj,lk->il">(a, b, c)
        }""",
    )


def test_a_letter_that_occurs_twice_in_a_term() -> None:
    assert_rewrites(
        """g (float[3,4,3] x) => (float[4,3] y) {
            t = Transpose<perm=[0,2,1]>(x)
            s = Einsum<equation="iij->ij">(t)
            y = Transpose<perm=[1,0]>(s)
        }""",
        """g (float[3,4,3] x) => (float[4,3] y) {
            y = Einsum<equation="iji->ji">(x)
        }""",
    )


def test_an_implicit_result_is_spelt_out() -> None:
    assert_rewrites(
        """g (float[3,4] x, float[4,5] w) => (float[3,5] y) {
            s = Einsum<equation="bZ, Za">(x, w)
            y = Transpose<perm=[1,0]>(s)
        }""",
        """g (float[3,4] x, float[4,5] w) => (float[3,5] y) {
            y = Einsum<equation="bZ,Za->ba">(x, w)
        }""",
    )


def test_axes_without_a_name_move_as_a_whole() -> None:
    assert_rewrites(
        """g (float[4,2,3,5] x, float[5,6] w) => (float[6,2,3,4] y) {
            t = Transpose<perm=[1,2,0,3]>(x)
            s = Einsum<equation="...ij,jk->...ik">(t, w)
            y = Transpose<perm=[3,0,1,2]>(s)
        }""",
        """g (float[4,2,3,5] x, float[5,6] w) => (float[6,2,3,4] y) {
            y = Einsum<equation="i...j,jk->k...i">(x, w)
        }""",
    )


def test_axes_without_a_name_are_not_torn_apart() -> None:
    assert_kept(
        """g (float[3,2,4,5] x, float[5,6] w) => (float[2,3,4,6] y) {
            t = Transpose<perm=[1,0,2,3]>(x)
            y = Einsum<equation="...ij,jk->...ik">(t, w)
        }"""
    )


def test_a_result_that_is_read_twice_stays() -> None:
    assert_kept(
        """g (float[3,4] x) => (float[3,4] y, float[4,3] z) {
            s = Einsum<equation="ij->ij">(x)
            y = Relu(s)
            z = Transpose<perm=[1,0]>(s)
        }"""
    )


def test_orders_reach_an_einsum_through_other_operators() -> None:
    assert_layouts(
        """g (float[2,3,4] q, float[2,5,4] k) => (float[2,3,5] y) {
            t = Transpose<perm=[0,2,1]>(k)
            u = Sigmoid(t)
            y = Einsum<equation="bqd,bdk->bqk">(q, u)
        }""",
        transposes=0,
        exact=False,
    )


@pytest.mark.parametrize(
    ("text", "result"),
    [("ij,jk", "ik"), ("ba", "ab"), ("...ij,jk", "...ik"), ("ii", ""), ("aB,Bc", "ac")],
)
def test_what_an_implicit_result_is(text: str, result: str) -> None:
    assert Equation.of(text).explicit_result == result


def test_a_term_that_does_not_fit_its_operand() -> None:
    assert Equation.of("ij->ij").with_operand(0, Permutation.of(2, 0, 1)) is None
