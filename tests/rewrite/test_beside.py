"""A bias is added beside its product, where runtimes look for it."""

from __future__ import annotations

from tests.rewrite.rewriting import as_given, assert_kept, assert_rewrites


def test_before_a_transpose() -> None:
    assert_rewrites(
        """g (float[2,3,4,5] x, float[5,6] w) => (float[2,4,3,6] y)
        <float[6] b = {1,2,3,4,5,6}> {
            m = MatMul(x, w)
            t = Transpose<perm=[0,2,1,3]>(m)
            y = Add(t, b)
        }""",
        """g (float[2,3,4,5] x, float[5,6] w) => (float[2,4,3,6] y)
        <float[6] b = {1,2,3,4,5,6}> {
            m = MatMul(x, w)
            a = Add(m, b)
            y = Transpose<perm=[0,2,1,3]>(a)
        }""",
        choose=as_given,
    )


def test_before_a_split_and_a_transpose() -> None:
    """Heads in front: the bias is a row of all heads before that."""
    assert_rewrites(
        """g (float[2,3,5] x, float[5,6] w) => (float[2,2,3,3] y)
        <int64[4] s = {2,3,2,3}, float[2,1,3] b = {1,2,3,4,5,6}> {
            m = MatMul(x, w)
            r = Reshape(m, s)
            t = Transpose<perm=[0,2,1,3]>(r)
            y = Add(b, t)
        }""",
        """g (float[2,3,5] x, float[5,6] w) => (float[2,2,3,3] y)
        <int64[4] s = {2,3,2,3}, float[6] b = {1,2,3,4,5,6}> {
            m = MatMul(x, w)
            a = Add(m, b)
            r = Reshape(a, s)
            y = Transpose<perm=[0,2,1,3]>(r)
        }""",
    )


def test_one_number_for_several_columns() -> None:
    assert_rewrites(
        """g (float[3,5] x, float[5,6] w) => (float[3,2,3] y)
        <int64[3] s = {3,2,3}, float[2,1] b = {1,2}> {
            m = MatMul(x, w)
            r = Reshape(m, s)
            y = Add(r, b)
        }""",
        """g (float[3,5] x, float[5,6] w) => (float[3,2,3] y)
        <int64[3] s = {3,2,3}, float[6] b = {1,1,1,2,2,2}> {
            m = MatMul(x, w)
            a = Add(m, b)
            y = Reshape(a, s)
        }""",
    )


def test_lengths_known_only_at_run_time() -> None:
    assert_rewrites(
        """g (float[N,L,5] x, float[5,6] w) => (float[L,N,6] y)
        <float[6] b = {1,2,3,4,5,6}> {
            m = MatMul(x, w)
            t = Transpose<perm=[1,0,2]>(m)
            y = Add(t, b)
        }""",
        """g (float[N,L,5] x, float[5,6] w) => (float[L,N,6] y)
        <float[6] b = {1,2,3,4,5,6}> {
            m = MatMul(x, w)
            a = Add(m, b)
            y = Transpose<perm=[1,0,2]>(a)
        }""",
        choose=as_given,
    )


def test_what_is_not_a_row_stays() -> None:
    """A summand for each row of the product is not a bias."""
    assert_kept(
        """g (float[2,3,5] x, float[5,6] w) => (float[2,6,3] y)
        <float[3] b = {1,2,3}> {
            m = MatMul(x, w)
            t = Transpose<perm=[0,2,1]>(m)
            y = Add(t, b)
        }"""
    )


def test_what_makes_the_sum_larger_stays() -> None:
    assert_kept(
        """g (float[3,4,5] x, float[5,1] w) => (float[4,3,6] y)
        <float[6] b = {1,2,3,4,5,6}> {
            m = MatMul(x, w)
            t = Transpose<perm=[1,0,2]>(m)
            y = Add(t, b)
        }"""
    )


def test_a_product_that_others_read_stays_as_it_is() -> None:
    assert_kept(
        """g (float[2,3,4,5] x, float[5,6] w) => (float[2,4,3,6] y, float[2,3,4,6] z)
        <float[6] b = {1,2,3,4,5,6}> {
            m = MatMul(x, w)
            t = Transpose<perm=[0,2,1,3]>(m)
            y = Add(t, b)
            z = Relu(m)
        }"""
    )


def test_a_caller_may_replace_a_default() -> None:
    assert_kept(
        """g (float[2,3,4,5] x, float[5,6] w, float[6] b) => (float[2,4,3,6] y)
        <float[6] b = {1,2,3,4,5,6}> {
            m = MatMul(x, w)
            t = Transpose<perm=[0,2,1,3]>(m)
            y = Add(t, b)
        }""",
        choose=as_given,
    )


def test_a_sum_of_constants_and_random_numbers_is_none_of_these() -> None:
    assert_kept(
        """g () => (float[2,3] y) <float[3] b = {1,2,3}> {
            r = RandomUniform<shape=[2,3], seed=1.0>()
            y = Add(r, b)
        }"""
    )
