"""Each mistake of the graph rules document, put right."""

from __future__ import annotations

import itertools

import pytest

import relayout
from relayout.layout.permutation import Permutation
from relayout.ops.measure import measure
from relayout.targets.target import ONNX, ORT, Target
from tests.rewrite.rewriting import (
    as_given,
    assert_kept,
    assert_rewrites,
    parse,
    rewritten,
    to_ir,
)


@pytest.mark.parametrize("perm", ["[0,2,1]", "[0,0]", "[0,2]", "[-1,0]"])
def test_x1_a_perm_that_does_not_fit_is_refused(perm: str) -> None:
    model = parse(
        f"""g (float[3,5] a, float[3,2] b) => (float[5,2] y) {{
            t = Transpose<perm={perm}>(a)
            y = MatMul(t, b)
        }}"""
    )
    with pytest.raises(relayout.BadModelError, match="'Transpose' node of 't' has the perm"):
        relayout.optimize(model)


def test_x2_neighbours_in_the_list_that_are_not_connected_stay() -> None:
    assert_kept(
        """g (float[2,3,4] a, float[2,3,4] b) => (float[2,4,3] c, float[2,4,3] d) {
            c = Transpose<perm=[0,2,1]>(a)
            d = Transpose<perm=[0,2,1]>(b)
        }"""
    )


def test_x2_connected_transposes_need_not_be_neighbours() -> None:
    assert_rewrites(
        """g (float[2,3,4] a, float[2,3,4] b) => (float[2,3,4] y, float[2,3,4] z) {
            s = Transpose<perm=[0,2,1]>(a)
            z = Relu(b)
            t = Transpose<perm=[0,2,1]>(s)
            y = Relu(t)
        }""",
        """g (float[2,3,4] a, float[2,3,4] b) => (float[2,3,4] y, float[2,3,4] z) {
            z = Relu(b)
            y = Relu(a)
        }""",
    )


def test_x3_every_reader_of_the_second_is_rewired() -> None:
    assert_rewrites(
        """g (float[2,3,4] a) => (float[2,3,4] y, float[2,3,4] z) {
            s = Transpose<perm=[0,2,1]>(a)
            t = Transpose<perm=[0,2,1]>(s)
            y = Relu(t)
            z = Neg(t)
        }""",
        """g (float[2,3,4] a) => (float[2,3,4] y, float[2,3,4] z) {
            y = Relu(a)
            z = Neg(a)
        }""",
    )


def test_x4_the_first_stays_while_others_read_it() -> None:
    assert_rewrites(
        """g (float[2,3,4] a) => (float[2,3,4] y, float[2,4,3] z) {
            s = Transpose<perm=[0,2,1]>(a)
            t = Transpose<perm=[0,2,1]>(s)
            y = Relu(t)
            z = Neg(s)
        }""",
        """g (float[2,3,4] a) => (float[2,3,4] y, float[2,4,3] z) {
            s = Transpose<perm=[0,2,1]>(a)
            y = Relu(a)
            z = Neg(s)
        }""",
    )


def test_x4_the_first_stays_while_it_is_an_output() -> None:
    assert_rewrites(
        """g (float[2,3,4] a) => (float[2,4,3] s, float[2,3,4] y) {
            s = Transpose<perm=[0,2,1]>(a)
            t = Transpose<perm=[0,2,1]>(s)
            y = Relu(t)
        }""",
        """g (float[2,3,4] a) => (float[2,4,3] s, float[2,3,4] y) {
            s = Transpose<perm=[0,2,1]>(a)
            y = Relu(a)
        }""",
    )


def test_x5_an_output_keeps_its_name_without_a_copy() -> None:
    assert_rewrites(
        """g (float[2,3,4] a) => (float[2,3,4] y) {
            r = Relu(a)
            s = Transpose<perm=[0,2,1]>(r)
            y = Transpose<perm=[0,2,1]>(s)
        }""",
        "g (float[2,3,4] a) => (float[2,3,4] y) { y = Relu(a) }",
    )


def test_x5_an_output_that_is_an_input_needs_an_identity() -> None:
    assert_rewrites(
        """g (float[2,3,4] a) => (float[2,3,4] y) {
            s = Transpose<perm=[0,2,1]>(a)
            y = Transpose<perm=[0,2,1]>(s)
        }""",
        "g (float[2,3,4] a) => (float[2,3,4] y) { y = Identity(a) }",
    )


def test_x5_two_outputs_of_one_value_need_an_identity() -> None:
    assert_rewrites(
        """g (float[2,3,4] a) => (float[2,3,4] r, float[2,3,4] y) {
            r = Relu(a)
            s = Transpose<perm=[0,2,1]>(r)
            y = Transpose<perm=[0,2,1]>(s)
        }""",
        """g (float[2,3,4] a) => (float[2,3,4] r, float[2,3,4] y) {
            r = Relu(a)
            y = Identity(r)
        }""",
    )


def test_x6_a_transpose_others_read_stays_beside_the_product() -> None:
    assert_rewrites(
        """g (float[3,5] a, float[3,2] b) => (float[5,2] y, float[5,3] z) {
            t = Transpose<perm=[1,0]>(a)
            y = MatMul(t, b)
            z = Relu(t)
        }""",
        """g (float[3,5] a, float[3,2] b) => (float[5,2] y, float[5,3] z) {
            t = Transpose<perm=[1,0]>(a)
            y = Gemm<transA=1>(a, b)
            z = Relu(t)
        }""",
    )


def test_x7_nothing_dead_is_left_behind() -> None:
    result = rewritten(
        parse(
            """g (float[3,5] a, float[3,2] b) => (float[5,2] y) {
                t = Transpose<perm=[1,0]>(a)
                y = MatMul(t, b)
            }"""
        )
    )
    names = {value for node in result.graph.node for value in (*node.input, *node.output)}
    assert names == {"a", "b", "y"}
    assert not result.graph.initializer


def test_x8_both_factors_in_one_run() -> None:
    assert_rewrites(
        """g (float[3,5] a, float[2,3] b) => (float[5,2] y) {
            s = Transpose<perm=[1,0]>(a)
            t = Transpose<perm=[1,0]>(b)
            m = MatMul(s, t)
            y = Relu(m)
        }""",
        """g (float[3,5] a, float[2,3] b) => (float[5,2] y) {
            m = Gemm<transA=1, transB=1>(a, b)
            y = Relu(m)
        }""",
    )


def test_x8_nested_pairs_go_in_one_run() -> None:
    assert_rewrites(
        """g (float[2,3,4] x) => (float[2,3,4] y) {
            a = Transpose<perm=[1,2,0]>(x)
            b = Transpose<perm=[0,2,1]>(a)
            c = Transpose<perm=[0,2,1]>(b)
            d = Transpose<perm=[2,0,1]>(c)
            y = Relu(d)
        }""",
        "g (float[2,3,4] x) => (float[2,3,4] y) { y = Relu(x) }",
    )


def test_x9_the_same_transpose_twice_in_one_product() -> None:
    assert_rewrites(
        """g (float[3,3] a) => (float[3,3] y) {
            t = Transpose<perm=[1,0]>(a)
            y = MatMul(t, t)
        }""",
        "g (float[3,3] a) => (float[3,3] y) { y = Gemm<transA=1, transB=1>(a, a) }",
    )


def test_x10_orders_of_unequal_rank_do_not_compose() -> None:
    with pytest.raises(ValueError, match="do not compose"):
        Permutation.of(0, 1).then(Permutation.of(0, 1, 2))


@pytest.mark.parametrize("axes", list(itertools.permutations(range(4))))
def test_x11_any_order_and_its_inverse_go(axes: tuple[int, ...]) -> None:
    order = Permutation(axes)
    back = list(order.inverse())
    result = rewritten(
        parse(
            f"""g (float[2,3,4,5] x) => (float[2,3,4,5] y) {{
                t = Transpose<perm={list(axes)}>(x)
                u = Transpose<perm={back}>(t)
                y = Relu(u)
            }}"""
        )
    )
    assert [node.op_type for node in result.graph.node] == ["Relu"]


def test_x12_a_chain_that_does_not_cancel_becomes_one() -> None:
    assert_rewrites(
        """g (float[2,3,4] x) => (float[3,4,2] y) {
            a = Transpose<perm=[1,0,2]>(x)
            y = Transpose<perm=[0,2,1]>(a)
        }""",
        "g (float[2,3,4] x) => (float[3,4,2] y) { y = Transpose<perm=[1,2,0]>(x) }",
    )


def test_x12_an_identity_goes_and_flips_no_flag() -> None:
    assert_rewrites(
        """g (float[3,3] a, float[3,3] b) => (float[3,3] y) {
            t = Transpose<perm=[0,1]>(a)
            y = MatMul(t, b)
        }""",
        "g (float[3,3] a, float[3,3] b) => (float[3,3] y) { y = MatMul(a, b) }",
    )


def test_x12_a_move_of_unit_axes_is_a_reshape() -> None:
    assert_rewrites(
        "g (float[N,1,8,7] x) => (float[N,8,7,1] y) { y = Transpose<perm=[0,2,3,1]>(x) }",
        """g (float[N,1,8,7] x) => (float[N,8,7,1] y) <int64[4] s = {0,8,7,1}> {
            y = Reshape(x, s)
        }""",
    )


def test_x13_the_gain_of_a_pair_and_of_a_merge() -> None:
    """A pair saves two reads and two writes of the tensor, a merge one of each."""
    pair = parse(
        """g (float[2,3,4] a) => (float[2,3,4] y) {
            s = Transpose<perm=[0,2,1]>(a)
            t = Transpose<perm=[0,2,1]>(s)
            y = Relu(t)
        }"""
    )
    assert measure(to_ir(pair)).bytes_moved == 4 * (2 * 3 * 4 * 4)
    assert measure(to_ir(rewritten(pair))).bytes_moved == 0


@pytest.mark.parametrize("target", [ONNX, ORT], ids=lambda target: target.name)
@pytest.mark.parametrize("given", ["float[3] v", "float[5] v"])
def test_x14_a_product_with_a_vector_exchanges_its_factors(given: str, target: Target) -> None:
    """It gets no flag, which ONNX Runtime misreads beside a vector."""
    is_behind = "3" in given
    result = "float[5] y" if is_behind else "float[3] y"
    assert_rewrites(
        f"""g (float[3,5] a, {given}) => ({result}) {{
            t = Transpose<perm=[1,0]>(a)
            y = MatMul{"(t, v)" if is_behind else "(v, t)"}
        }}""",
        f"""g (float[3,5] a, {given}) => ({result}) {{
            y = MatMul{"(v, a)" if is_behind else "(a, v)"}
        }}""",
        target=target,
    )


def test_x14_a_transpose_that_stays_is_not_read_by_a_product_with_a_vector() -> None:
    """ONNX Runtime would fold it, wrongly, though others read it too."""
    assert_rewrites(
        """g (float[3,5] a, float[3] v) => (float[5,3] z, float[5] y) {
            t = Transpose<perm=[1,0]>(a)
            z = Relu(t)
            y = MatMul(t, v)
        }""",
        """g (float[3,5] a, float[3] v) => (float[5,3] z, float[5] y) {
            t = Transpose<perm=[1,0]>(a)
            z = Relu(t)
            y = MatMul(v, a)
        }""",
        choose=as_given,
    )


def test_x14_batches_need_a_target_with_flags() -> None:
    text = """g (float[2,3,5] a, float[2,3,4] b) => (float[2,5,4] y) {
        t = Transpose<perm=[0,2,1]>(a)
        y = MatMul(t, b)
    }"""
    assert_kept(text)
    assert_rewrites(
        text,
        """g (float[2,3,5] a, float[2,3,4] b) => (float[2,5,4] y) {
            y = com.microsoft.FusedMatMul<transA=1>(a, b)
        }""",
        target=ORT,
    )


def test_x14_an_order_that_moves_the_batch_is_not_a_flag() -> None:
    assert_kept(
        """g (float[5,3,2] a, float[2,3,4] b) => (float[2,5,4] y) {
            t = Transpose<perm=[2,0,1]>(a)
            y = MatMul(t, b)
        }""",
        target=ORT,
    )


@pytest.mark.parametrize("opset", [7, 9, 10, 11, 13])
def test_x14_old_gemm_needs_its_third_operand(opset: int) -> None:
    third = ", z" if opset < 11 else ""
    constant = "<float[1] z = {0}>" if opset < 11 else ""
    assert_rewrites(
        """g (float[3,5] a, float[3,2] b) => (float[5,2] y) {
            t = Transpose<perm=[1,0]>(a)
            y = MatMul(t, b)
        }""",
        f"""g (float[3,5] a, float[3,2] b) => (float[5,2] y) {constant} {{
            y = Gemm<transA=1>(a, b{third})
        }}""",
        opset=opset,
    )


def test_x16_without_perm_all_axes_are_reversed() -> None:
    assert_rewrites(
        """g (float[2,3,4] x) => (float[2,3,4] y) {
            t = Transpose(x)
            u = Transpose<perm=[2,1,0]>(t)
            y = Relu(u)
        }""",
        "g (float[2,3,4] x) => (float[2,3,4] y) { y = Relu(x) }",
    )


def test_x16_without_perm_and_rank_nothing_is_done() -> None:
    assert_kept(
        """g (float[2,3] x) => (float[2,3] y) {
            r = com.microsoft.Unheard(x)
            t = Transpose(r)
            u = Transpose(t)
            y = com.microsoft.Unheard(u)
        }"""
    )


def test_a_matrix_transpose_is_recognised_for_ranks_up_to_six() -> None:
    for rank in range(7):
        for axes in itertools.permutations(range(rank)):
            swapped = rank >= 2 and list(axes) == [*range(rank - 2), rank - 1, rank - 2]
            assert Permutation(axes).swaps_last_two == swapped


def test_third_operand_of_gemm_is_not_a_factor() -> None:
    assert_kept(
        """g (float[3,5] a, float[5,2] b, float[2,3] c) => (float[3,2] y) {
            t = Transpose<perm=[1,0]>(c)
            y = Gemm(a, b, t)
        }"""
    )
