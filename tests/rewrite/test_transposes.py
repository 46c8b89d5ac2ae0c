"""Chains, sharing, constants, outputs, bodies of control flow and of functions."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from tests.rewrite.rewriting import (
    assert_kept,
    assert_rewrites,
    parse,
    rewritten,
)


def test_orders_that_do_not_commute_compose_in_the_right_order() -> None:
    assert_rewrites(
        """g (float[2,3,4] x) => (float[3,4,2] y) {
            a = Transpose<perm=[1,0,2]>(x)
            b = Transpose<perm=[0,2,1]>(a)
            y = Relu(b)
        }""",
        """g (float[2,3,4] x) => (float[3,4,2] y) {
            b = Transpose<perm=[1,2,0]>(x)
            y = Relu(b)
        }""",
    )


def test_readers_of_one_order_share_one_transpose() -> None:
    assert_rewrites(
        """g (float[2,3,4] x) => (float[2,4,3] y, float[2,4,3] z, float[4,3,2] w) {
            a = Transpose<perm=[0,2,1]>(x)
            b = Transpose<perm=[0,2,1]>(x)
            c = Transpose<perm=[2,1,0]>(x)
            y = Relu(a)
            z = Neg(b)
            w = Neg(c)
        }""",
        """g (float[2,3,4] x) => (float[2,4,3] y, float[2,4,3] z, float[4,3,2] w) {
            a = Transpose<perm=[0,2,1]>(x)
            c = Transpose<perm=[2,1,0]>(x)
            y = Relu(a)
            z = Neg(a)
            w = Neg(c)
        }""",
    )


def test_a_chain_that_ends_like_another_transpose_is_shared() -> None:
    """The chain stands first in the list, so it is the one that stays."""
    assert_rewrites(
        """g (float[2,3,4] x) => (float[4,2,3] y, float[4,2,3] z) {
            a = Transpose<perm=[0,2,1]>(x)
            b = Transpose<perm=[1,0,2]>(a)
            y = Relu(b)
            c = Transpose<perm=[2,0,1]>(x)
            z = Neg(c)
        }""",
        """g (float[2,3,4] x) => (float[4,2,3] y, float[4,2,3] z) {
            b = Transpose<perm=[2,0,1]>(x)
            y = Relu(b)
            z = Neg(b)
        }""",
    )


def test_two_outputs_of_the_same_order() -> None:
    assert_rewrites(
        """g (float[2,3] x) => (float[3,2] y, float[3,2] z) {
            y = Transpose<perm=[1,0]>(x)
            z = Transpose<perm=[1,0]>(x)
        }""",
        """g (float[2,3] x) => (float[3,2] y, float[3,2] z) {
            y = Transpose<perm=[1,0]>(x)
            z = Identity(y)
        }""",
    )


def test_a_transpose_of_a_constant_is_a_constant() -> None:
    assert_rewrites(
        """g (float[3,2] x) => (float[3,2] y) <float[2,3] w = {1,2,3,4,5,6}> {
            t = Transpose<perm=[1,0]>(w)
            y = Add(x, t)
        }""",
        """g (float[3,2] x) => (float[3,2] y) <float[3,2] w = {1,4,2,5,3,6}> {
            y = Add(x, w)
        }""",
    )


def test_a_shared_constant_is_copied_before_it_changes() -> None:
    assert_rewrites(
        """g (float[3,2] x) => (float[3,2] y, float[2,3] z) <float[2,3] w = {1,2,3,4,5,6}> {
            t = Transpose<perm=[1,0]>(w)
            y = Add(x, t)
            z = Relu(w)
        }""",
        """g (float[3,2] x) => (float[3,2] y, float[2,3] z)
           <float[2,3] w = {1,2,3,4,5,6}, float[3,2] v = {1,4,2,5,3,6}> {
            y = Add(x, v)
            z = Relu(w)
        }""",
    )


def test_a_default_the_caller_may_override_is_not_a_constant() -> None:
    model = parse(
        """g (float[3,2] x, float[2,3] w) => (float[3,2] y) {
            t = Transpose<perm=[1,0]>(w)
            y = Add(x, t)
        }"""
    )
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.ones((2, 3), np.float32), "w"))
    result = rewritten(model)
    assert [node.op_type for node in result.graph.node] == ["Transpose", "Add"]
    assert [value.name for value in result.graph.input] == ["x", "w"]


def test_views_of_a_constant_are_folded_on_the_way_to_a_transpose() -> None:
    assert_rewrites(
        """g (float[3,2] x) => (float[3,2] y)
           <float[6] w = {1,2,3,4,5,6}, int64[2] s = {2,3}> {
            v = Reshape(w, s)
            t = Transpose<perm=[1,0]>(v)
            y = Add(x, t)
        }""",
        """g (float[3,2] x) => (float[3,2] y) <float[3,2] w = {1,4,2,5,3,6}> {
            y = Add(x, w)
        }""",
    )


def test_the_arithmetic_of_shapes_is_folded() -> None:
    assert_rewrites(
        """g (float[2,3,4] x) => (float[2,12] y)
           <int64[1] minus = {-1}, int64 zero = {0}, int64[1] axes = {0}> {
            s = Shape(x)
            n = Gather(s, zero)
            m = Unsqueeze(n, axes)
            t = Concat<axis=0>(m, minus)
            y = Reshape(x, t)
        }""",
        """g (float[2,3,4] x) => (float[2,12] y) <int64[2] t = {2,-1}> {
            y = Reshape(x, t)
        }""",
    )


def test_a_constant_that_would_grow_large_is_not_made() -> None:
    assert_kept(
        """g (float[1] x) => (float[4096,4096] y)
           <float[1] one = {1}, int64[2] s = {4096,4096}> {
            e = Expand(one, s)
            y = Add(e, x)
        }"""
    )


@pytest.mark.parametrize(
    ("shape", "perm", "target"),
    [
        ("2,1,5", [0, 2, 1], "2,5,1"),
        ("N,1,5", [0, 2, 1], "0,5,1"),
        ("1,N,5", [1, 0, 2], "-1,1,5"),
        ("1,1,N", [2, 0, 1], "-1,1,1"),
    ],
)
def test_a_move_of_unit_axes_becomes_a_reshape(shape: str, perm: list[int], target: str) -> None:
    dims = shape.split(",")
    moved = ",".join(dims[axis] for axis in perm)
    assert_rewrites(
        f"""g (float[{shape}] x) => (float[{moved}] y) {{
            t = Transpose<perm={perm}>(x)
            y = Relu(t)
        }}""",
        f"""g (float[{shape}] x) => (float[{moved}] y) <int64[3] s = {{{target}}}> {{
            t = Reshape(x, s)
            y = Relu(t)
        }}""",
    )


@pytest.mark.parametrize(
    ("shape", "perm"),
    [("N,M,5", [1, 0, 2]), ("N,5,7", [0, 2, 1])],
)
def test_what_moves_data_stays(shape: str, perm: list[int]) -> None:
    dims = shape.split(",")
    moved = ",".join(dims[axis] for axis in perm)
    assert_kept(
        f"""g (float[{shape}] x) => (float[{moved}] y) {{
            t = Transpose<perm={perm}>(x)
            y = Relu(t)
        }}"""
    )


@pytest.mark.parametrize(
    ("shape", "perm", "taken", "put"),
    [
        ("1,N,M", [1, 0, 2], "0", "1"),
        ("0,1,5", [1, 0, 2], "1", "0"),
        ("N,1,M,1", [1, 0, 3, 2], "1, 3", "0, 2"),
    ],
)
def test_unit_axes_are_taken_out_where_no_target_shape_states_it(
    shape: str, perm: list[int], taken: str, put: str
) -> None:
    dims = shape.split(",")
    moved = ",".join(dims[axis] for axis in perm)
    count = len(taken.split(","))
    assert_rewrites(
        f"""g (float[{shape}] x) => (float[{moved}] y) {{
            t = Transpose<perm={perm}>(x)
            y = Relu(t)
        }}""",
        f"""g (float[{shape}] x) => (float[{moved}] y)
           <int64[{count}] s = {{{taken}}}, int64[{count}] u = {{{put}}}> {{
            r = Squeeze(x, s)
            t = Unsqueeze(r, u)
            y = Relu(t)
        }}""",
    )


def test_lengths_picked_from_a_shape_that_is_known_in_part() -> None:
    assert_rewrites(
        """g (float[N,3,4] x, float[3,4] z) => (float[4,3] y) <int64[2] ends = {-1, 1}> {
            s = Shape(x)
            n = Gather(s, ends)
            y = Reshape(z, n)
        }""",
        """g (float[N,3,4] x, float[3,4] z) => (float[4,3] y) <int64[2] n = {4, 3}> {
            y = Reshape(z, n)
        }""",
    )


def test_lengths_that_are_not_known_are_not_picked() -> None:
    assert_kept(
        """g (float[N,3,4] x, float[6] z) => (float[A,B] y) <int64[2] ends = {0, 1}> {
            s = Shape(x)
            n = Gather(s, ends)
            y = Reshape(z, n)
        }"""
    )


@pytest.mark.parametrize("shape", ["1,1,8", "1,1,N", "1,1,1"])
def test_a_move_of_unit_axes_to_each_others_places_is_nothing(shape: str) -> None:
    interface = f"g (float[{shape}] x) => (float[{shape}] y)"
    assert_rewrites(
        f"{interface} {{ a = Transpose<perm=[1,0,2]>(x) y = Neg(a) }}",
        f"{interface} {{ y = Neg(x) }}",
    )
