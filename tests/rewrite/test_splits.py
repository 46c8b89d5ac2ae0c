"""Legs of one Split that are transposed alike."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from tests.rewrite.rewriting import (
    as_given,
    assert_kept,
    assert_rewrites,
    assert_same_numbers,
    parse,
    rewritten,
    transposes,
)

TRANSPOSE = "Transpose<perm=[0,2,1]>"


def test_neighbours_are_transposed_as_one() -> None:
    assert_rewrites(
        f"""g (float[2,9,5] x) => (float[2,2,5] y, float[2,5,3] z, float[2,5,4] w)
            <int64[3] n = {{2,3,4}}> {{
            a, b, c = Split<axis=1>(x, n)
            y = Relu(a)
            s = {TRANSPOSE}(b)
            z = Relu(s)
            t = {TRANSPOSE}(c)
            w = Relu(t)
        }}""",
        f"""g (float[2,9,5] x) => (float[2,2,5] y, float[2,5,3] z, float[2,5,4] w)
            <int64[2] m = {{2,7}}, int64[2] n = {{3,4}}> {{
            a, h = Split<axis=1>(x, m)
            g = {TRANSPOSE}(h)
            s, t = Split<axis=2>(g, n)
            y = Relu(a)
            z = Relu(s)
            w = Relu(t)
        }}""",
    )


def test_a_split_of_which_all_is_transposed_comes_after_the_transpose() -> None:
    assert_rewrites(
        f"""g (float[N,6,5] x) => (float[N,5,3] y, float[N,5,3] z) {{
            a, b = Split<axis=-2, num_outputs=2>(x)
            y = {TRANSPOSE}(a)
            z = {TRANSPOSE}(b)
        }}""",
        f"""g (float[N,6,5] x) => (float[N,5,3] y, float[N,5,3] z) <int64[2] n = {{3,3}}> {{
            t = {TRANSPOSE}(x)
            y, z = Split<axis=2>(t, n)
        }}""",
        choose=as_given,
    )


@pytest.mark.parametrize(
    ("opset", "before", "after"),
    [
        (11, "Split<axis=2>(x)", "Split<axis=0, split=[4,4]>(t)"),
        (11, "Split<axis=2, split=[3,5]>(x)", "Split<axis=0, split=[3,5]>(t)"),
        (13, "Split<axis=2>(x)", "Split<axis=0>(t, four)"),
        (17, "Split<axis=2>(x, three)", "Split<axis=0>(t, three)"),
        (18, "Split<axis=2, num_outputs=2>(x)", "Split<axis=0>(t, four)"),
    ],
)
def test_however_the_lengths_are_stated(opset: int, before: str, after: str) -> None:
    header = """g (float[2,3,8] x) => (float[P,2,3] y, float[Q,2,3] z)
        <int64[2] three = {3,5}, int64[2] four = {4,4}>"""
    assert_rewrites(
        f"""{header} {{
            a, b = {before}
            s = Transpose<perm=[2,0,1]>(a)
            y = Relu(s)
            u = Transpose<perm=[2,0,1]>(b)
            z = Relu(u)
        }}""",
        f"""{header} {{
            t = Transpose<perm=[2,0,1]>(x)
            s, u = {after}
            y = Relu(s)
            z = Relu(u)
        }}""",
        opset=opset,
        choose=as_given,
    )


def test_each_order_has_its_own_group() -> None:
    model = parse(
        f"""g (float[2,8,5] x)
            => (float[2,5,2] y, float[2,5,2] z, float[5,2,2] v, float[5,2,2] w) {{
            a, b, c, d = Split<axis=1, num_outputs=4>(x)
            y = {TRANSPOSE}(a)
            z = {TRANSPOSE}(b)
            v = Transpose<perm=[2,0,1]>(c)
            w = Transpose<perm=[2,0,1]>(d)
        }}"""
    )
    result = rewritten(model)
    assert [transposes(model), transposes(result)] == [4, 2]
    assert_same_numbers(model, result, exact=True)


NOT_GROUPED = {
    "a leg between them": f"""a, b, c = Split<axis=1>(x, n)
        y = {TRANSPOSE}(a) z = {TRANSPOSE}(c) w = Neg(b)""",
    "orders that differ": f"""a, b, c = Split<axis=1>(x, n)
        y = {TRANSPOSE}(a) u = Transpose<perm=[2,0,1]>(b) z = Relu(u) w = Neg(c)""",
    "another reader": f"""a, b, c = Split<axis=1>(x, n)
        y = {TRANSPOSE}(a) z = {TRANSPOSE}(b) w = Add(b, c)""",
    "an unread leg between": f"""a, b, c = Split<axis=1>(x, n)
        y = {TRANSPOSE}(a) z = {TRANSPOSE}(c) w = Neg(v)""",
}


@pytest.mark.parametrize("reason", NOT_GROUPED)
def test_what_stays_apart(reason: str) -> None:
    assert_kept(
        f"""g (float[2,9,5] x, float[2,3,5] v)
            => (float[P,Q,R] y, float[S,T,U] z, float[2,3,5] w)
            <int64[3] n = {{3,3,3}}> {{
            {NOT_GROUPED[reason]}
        }}"""
    )


def test_a_leg_that_is_an_output_stays() -> None:
    assert_kept(
        f"""g (float[2,6,5] x) => (float[2,5,3] y, float[2,5,3] z, float[2,3,5] b) {{
            a, b = Split<axis=1, num_outputs=2>(x)
            y = {TRANSPOSE}(a)
            z = {TRANSPOSE}(b)
        }}"""
    )


def test_a_leg_that_a_branch_transposes_stays() -> None:
    assert_kept(
        f"""g (bool c, float[2,6,5] x) => (float[2,5,3] y, float[2,5,3] z) {{
            a, b = Split<axis=1, num_outputs=2>(x)
            y = {TRANSPOSE}(a)
            z = If(c) <
                then_branch = f () => (float[2,5,3] p) {{ p = {TRANSPOSE}(b) }},
                else_branch = h () => (float[2,5,3] q) {{ q = {TRANSPOSE}(b) }}
            >
        }}""",
        choose=as_given,
    )


def test_lengths_that_are_known_only_at_run_time_stay() -> None:
    assert_kept(
        f"""g (float[2,N,5] x, int64[2] n) => (float[2,5,P] y, float[2,5,Q] z) {{
            a, b = Split<axis=1>(x, n)
            y = {TRANSPOSE}(a)
            z = {TRANSPOSE}(b)
        }}""",
        choose=as_given,
    )


def test_legs_of_length_one_move_nothing_and_stay_alone() -> None:
    assert_rewrites(
        f"""g (float[2,2,5] x) => (float[2,5,1] y, float[2,5,1] z) {{
            a, b = Split<axis=1, num_outputs=2>(x)
            y = {TRANSPOSE}(a)
            z = {TRANSPOSE}(b)
        }}""",
        """g (float[2,2,5] x) => (float[2,5,1] y, float[2,5,1] z) <int64[3] s = {2,5,1}> {
            a, b = Split<axis=1, num_outputs=2>(x)
            y = Reshape(a, s)
            z = Reshape(b, s)
        }""",
    )


ORDERS = (None, (0, 2, 1), (2, 0, 1), (1, 0, 2))


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.sampled_from(ORDERS), st.booleans()),
        min_size=1,
        max_size=6,
    ),
    st.sampled_from([0, 1, 2, -1]),
)
def test_any_split_computes_the_same(
    legs: list[tuple[int, tuple[int, ...] | None, bool]], axis: int
) -> None:
    """Every leg has a length, an order, and perhaps a second reader."""
    lines, outputs = [], []
    for index, (_, order, is_read_twice) in enumerate(legs):
        if order is not None:
            lines.append(f"t{index} = Transpose<perm={list(order)}>(l{index})")
            outputs.append(f"t{index}")
        if is_read_twice:
            lines.append(f"r{index} = Neg(l{index})")
            outputs.append(f"r{index}")
    lengths = [length for length, _, _ in legs]
    shape = [3, 4, 5]
    shape[axis] = sum(lengths)
    names = ", ".join(f"l{index}" for index in range(len(legs)))
    results = ", ".join(f"float[A{n},B{n},C{n}] {n}" for n in outputs) or "float[A,B,C] l0"
    model = parse(
        f"""g (float{shape} x) => ({results})
            <int64[{len(legs)}] n = {{{",".join(map(str, lengths))}}}> {{
            {names} = Split<axis={axis}>(x, n)
            {chr(10).join(lines)}
        }}"""
    )
    result = rewritten(model)
    assert transposes(result) <= transposes(model)
    assert_same_numbers(model, result, exact=True)
