"""Chains of views: what they become, and what keeps them as they are."""

from __future__ import annotations

import pytest

from tests.rewrite.rewriting import (
    assert_kept,
    assert_rewrites,
    assert_same_numbers,
    parse,
    rewritten,
)

BATCHES = pytest.mark.parametrize("n", ["2", "N"], ids=["static", "symbolic"])


# chains that need no Transpose


@BATCHES
def test_tokens_transposed_back(n: str) -> None:
    assert_rewrites(
        f"""g (float[{n},12,4,6] x) => (float[{n},12,24] y) <int64[3] s = {{0,24,12}}> {{
            a = Transpose<perm=[0,2,3,1]>(x)
            b = Reshape(a, s)
            c = Transpose<perm=[0,2,1]>(b)
            y = Relu(c)
        }}""",
        f"""g (float[{n},12,4,6] x) => (float[{n},12,24] y) <int64[3] s = {{{_own(n)},12,24}}> {{
            c = Reshape(x, s)
            y = Relu(c)
        }}""",
    )


@BATCHES
def test_channels_transposed_back(n: str) -> None:
    assert_rewrites(
        f"""g (float[{n},4,6,12] x) => (float[{n},24,12] y) <int64[3] s = {{0,12,24}}> {{
            a = Transpose<perm=[0,3,1,2]>(x)
            b = Reshape(a, s)
            c = Transpose<perm=[0,2,1]>(b)
            y = Relu(c)
        }}""",
        f"""g (float[{n},4,6,12] x) => (float[{n},24,12] y) <int64[3] s = {{{_own(n)},24,12}}> {{
            c = Reshape(x, s)
            y = Relu(c)
        }}""",
    )


def _own(n: str) -> str:
    """A known length stands for itself, another one is copied."""
    return n if n.isdigit() else "0"


def test_a_length_of_the_run_is_asked_for_where_the_chain_asked_for_it() -> None:
    """The chain divides by N and fails where N is 0, so its result may divide by N too."""
    assert_rewrites(
        """g (float[N,12,H,W] x) => (float[N,12,L] y) <int64[3] s = {0,-1,12}> {
            a = Transpose<perm=[0,2,3,1]>(x)
            b = Reshape(a, s)
            c = Transpose<perm=[0,2,1]>(b)
            y = Relu(c)
        }""",
        """g (float[N,12,H,W] x) => (float[N,12,L] y) <int64[3] s = {0,12,-1}> {
            c = Reshape(x, s)
            y = Relu(c)
        }""",
    )


PAIRS = {
    "pixel shuffle": (
        "[{n},12,4,6]",
        """ <int64[6] s = {0,3,2,2,4,6}, int64[4] t = {0,3,8,12}, int64[6] u = {0,3,4,2,6,2},
             int64[4] v = {0,12,4,6}> {
            a = Reshape(x, s)
            b = Transpose<perm=[0,1,4,2,5,3]>(a)
            c = Reshape(b, t)
            d = Reshape(c, u)
            e = Transpose<perm=[0,1,3,5,2,4]>(d)
            f = Reshape(e, v)
            y = Relu(f)
        }""",
    ),
    "channel shuffle": (
        "[{n},12,4,6]",
        """ <int64[5] s = {0,3,4,4,6}, int64[5] t = {0,4,3,4,6}, int64[4] v = {0,12,4,6}> {
            a = Reshape(x, s)
            b = Transpose<perm=[0,2,1,3,4]>(a)
            c = Reshape(b, v)
            d = Reshape(c, t)
            e = Transpose<perm=[0,2,1,3,4]>(d)
            f = Reshape(e, v)
            y = Relu(f)
        }""",
    ),
    "heads": (
        "[{n},5,12]",
        """ <int64[4] s = {0,0,3,4}, int64[3] t = {0,0,-1}> {
            a = Reshape(x, s)
            b = Transpose<perm=[0,2,1,3]>(a)
            c = Transpose<perm=[0,2,1,3]>(b)
            d = Reshape(c, t)
            y = Relu(d)
        }""",
    ),
    "windows": (
        "[{n},8,12,3]",
        """ <int64[6] s = {-1,2,4,3,4,3}, int64[4] t = {-1,4,4,3}, int64[6] u = {-1,2,3,4,4,3},
             int64[4] v = {-1,8,12,3}> {
            a = Reshape(x, s)
            b = Transpose<perm=[0,1,3,2,4,5]>(a)
            c = Reshape(b, t)
            d = Reshape(c, u)
            e = Transpose<perm=[0,1,3,2,4,5]>(d)
            f = Reshape(e, v)
            y = Relu(f)
        }""",
    ),
}


@BATCHES
@pytest.mark.parametrize("name", PAIRS)
def test_what_is_done_and_undone_is_nothing(name: str, n: str) -> None:
    shape, body = PAIRS[name]
    dims = shape.format(n=n)
    header = f"g (float{dims} x) => (float{dims} y)"
    assert_rewrites(header + body, header + " { y = Relu(x) }")


# chains that need one


def test_five_become_three() -> None:
    assert_rewrites(
        """g (float[2,12,5] x) => (float[20,3,2] y)
           <int64[4] s = {2,3,4,5}, int64[3] t = {2,20,3}, int64[3] u = {20,3,2}> {
            a = Reshape(x, s)
            b = Transpose<perm=[0,2,3,1]>(a)
            c = Reshape(b, t)
            d = Transpose<perm=[1,2,0]>(c)
            e = Reshape(d, u)
            y = Relu(e)
        }""",
        """g (float[2,12,5] x) => (float[20,3,2] y) <int64[3] s = {2,3,20}> {
            a = Reshape(x, s)
            b = Transpose<perm=[2,1,0]>(a)
            y = Relu(b)
        }""",
    )


def test_a_transpose_between_reshapes_that_undo_each_other() -> None:
    assert_rewrites(
        """g (float[N,4,6,3] x) => (float[N,3,4,6] y)
           <int64[3] s = {0,24,3}, int64[4] t = {0,3,4,6}> {
            a = Reshape(x, s)
            b = Transpose<perm=[0,2,1]>(a)
            c = Reshape(b, t)
            y = Relu(c)
        }""",
        """g (float[N,4,6,3] x) => (float[N,3,4,6] y) {
            c = Transpose<perm=[0,3,1,2]>(x)
            y = Relu(c)
        }""",
    )


def test_a_border_between_divisors_needs_one_more() -> None:
    model = parse(
        """g (float[3,4] x) => (float[2,6] y)
           <int64[2] s = {6,2}, int64[2] t = {3,4}, int64[2] u = {2,6}> {
            a = Transpose<perm=[1,0]>(x)
            b = Reshape(a, s)
            c = Transpose<perm=[1,0]>(b)
            d = Reshape(c, t)
            e = Reshape(d, u)
            y = Relu(e)
        }"""
    )
    result = rewritten(model)
    assert [node.op_type for node in result.graph.node] == [
        *("Transpose", "Reshape", "Transpose", "Relu")
    ]
    assert_same_numbers(model, result, exact=True)


# chains without Transposes


def test_neighbouring_views_are_one() -> None:
    assert_rewrites(
        """g (float[N,1,4,6] x) => (float[N,24,1] y) <int64[1] s = {1}, int64[1] u = {2}> {
            a = Squeeze(x, s)
            b = Identity(a)
            c = Flatten<axis=1>(b)
            d = Unsqueeze(c, u)
            y = Relu(d)
        }""",
        """g (float[N,1,4,6] x) => (float[N,24,1] y) <int64[3] s = {0,24,1}> {
            d = Reshape(x, s)
            y = Relu(d)
        }""",
    )


def test_attributes_of_old_opsets_are_read() -> None:
    assert_rewrites(
        """g (float[N,1,4,6] x) => (float[N,1,4,6] y) {
            a = Squeeze<axes=[1]>(x)
            b = Unsqueeze<axes=[1]>(a)
            y = Relu(b)
        }""",
        "g (float[N,1,4,6] x) => (float[N,1,4,6] y) { y = Relu(x) }",
        opset=11,
    )


def test_a_reshape_to_the_same_shape_goes() -> None:
    assert_rewrites(
        """g (float[N,4,6] x) => (float[N,4,6] y) <int64[3] s = {-1,4,6}> {
            a = Reshape(x, s)
            y = Relu(a)
        }""",
        "g (float[N,4,6] x) => (float[N,4,6] y) { y = Relu(x) }",
    )


def test_a_result_keeps_its_name() -> None:
    assert_rewrites(
        """g (float[2,4,6] x) => (float[6,8] y) <int64[2] s = {8,6}> {
            r = Relu(x)
            a = Transpose<perm=[2,0,1]>(r)
            b = Transpose<perm=[1,2,0]>(a)
            c = Reshape(b, s)
            y = Transpose<perm=[1,0]>(c)
        }""",
        """g (float[2,4,6] x) => (float[6,8] y) <int64[2] s = {8,6}> {
            r = Relu(x)
            c = Reshape(r, s)
            y = Transpose<perm=[1,0]>(c)
        }""",
    )


def test_an_input_given_back_needs_a_node() -> None:
    assert_kept("g (float[2,3] x) => (float[2,3] y) { y = Identity(x) }")
    assert_rewrites(
        """g (float[2,3] x) => (float[2,3] y) <int64[1] s = {6}, int64[2] t = {2,3}> {
            a = Reshape(x, s)
            y = Reshape(a, t)
        }""",
        "g (float[2,3] x) => (float[2,3] y) { y = Identity(x) }",
    )


# what keeps a chain
