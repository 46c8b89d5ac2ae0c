"""DepthToSpace and SpaceToDepth beside Transposes, and chains that are nothing else."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

from relayout.layout.block_move import BlockMove
from relayout.layout.blocks import sizes_of
from tests.layout.test_strided_view import run
from tests.rewrite.rewriting import (
    assert_kept,
    assert_rewrites,
    assert_same_numbers,
    parse,
    rewritten,
    transposes,
)

BATCHES = pytest.mark.parametrize("n", ["2", "N"], ids=["static", "symbolic"])
MODES = pytest.mark.parametrize("mode", ["DCR", "CRD"])

TO_NCHW, TO_NHWC = "Transpose<perm=[0,3,1,2]>", "Transpose<perm=[0,2,3,1]>"


def operators(model: onnx.ModelProto) -> list[str]:
    return [node.op_type for node in model.graph.node]


# what the operators do


@MODES
@pytest.mark.parametrize("block", [2, 3])
def test_depth_to_space_is_what_onnx_defines(mode: str, block: int) -> None:
    shape = (2, 5 * block * block, 4, 6)
    model = parse(
        f"""g (float[2,{shape[1]},4,6] x) => (float[2,5,H,W] y) {{
            y = DepthToSpace<blocksize={block}, mode="{mode}">(x)
        }}"""
    )
    _assert_links(model, BlockMove("DepthToSpace", block, mode), shape)


@pytest.mark.parametrize("block", [2, 3])
def test_space_to_depth_is_what_onnx_defines(block: int) -> None:
    model = parse(
        f"""g (float[2,5,{4 * block},{6 * block}] x) => (float[2,C,4,6] y) {{
            y = SpaceToDepth<blocksize={block}>(x)
        }}"""
    )
    move = BlockMove("SpaceToDepth", block, "DCR")
    _assert_links(model, move, (2, 5, 4 * block, 6 * block))


@MODES
def test_one_is_the_inverse_of_the_other(mode: str) -> None:
    source = sizes_of(("N", 12, 4, 6), "source")
    there = BlockMove("DepthToSpace", 2, mode).links(source)
    assert there is not None
    assert isinstance(there[-1], tuple)
    back = BlockMove("SpaceToDepth", 2, mode).links(there[-1])
    assert back is not None
    same = run(source, (*there, *back), {"N": 3})
    assert np.array_equal(same.reshape(-1), np.arange(same.size))


def _assert_links(model: onnx.ModelProto, move: BlockMove, shape: tuple[int, ...]) -> None:
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    (expected,) = ReferenceEvaluator(model).run(None, {"x": x})
    source = sizes_of(shape, "source")
    links = move.links(source)
    assert links is not None
    np.testing.assert_array_equal(run(source, links, {}), expected)


def test_what_cannot_be_divided_into_blocks() -> None:
    shape = sizes_of(("N", 6, "H", 4), "source")
    assert BlockMove("DepthToSpace", 2, "DCR").links(shape) is None
    assert BlockMove("SpaceToDepth", 2, "DCR").links(shape) is None
    assert BlockMove("SpaceToDepth", 2, "DCR").links(shape[:3]) is None


# taken in


@BATCHES
@MODES
def test_a_block_move_between_transposes_is_one_transpose(mode: str, n: str) -> None:
    model = parse(
        f"""g (float[{n},4,6,20] x) => (float[{n},8,12,5] y) {{
            a = {TO_NCHW}(x)
            b = DepthToSpace<blocksize=2, mode="{mode}">(a)
            c = {TO_NHWC}(b)
            y = Relu(c)
        }}"""
    )
    result = rewritten(model)
    assert operators(result) == ["Reshape", "Transpose", "Reshape", "Relu"]
    assert_same_numbers(model, result, exact=True)


@BATCHES
def test_space_to_depth_between_transposes_is_one_transpose(n: str) -> None:
    model = parse(
        f"""g (float[{n},8,12,5] x) => (float[{n},4,6,20] y) {{
            a = {TO_NCHW}(x)
            b = SpaceToDepth<blocksize=2>(a)
            c = {TO_NHWC}(b)
            y = Relu(c)
        }}"""
    )
    result = rewritten(model)
    assert operators(result) == ["Reshape", "Transpose", "Reshape", "Relu"]
    assert_same_numbers(model, result, exact=True)


@BATCHES
def test_one_transpose_is_enough_reason(n: str) -> None:
    model = parse(
        f"""g (float[{n},4,6,20] x) => (float[{n},5,8,12] y) {{
            a = {TO_NCHW}(x)
            b = DepthToSpace<blocksize=2>(a)
            y = Relu(b)
        }}"""
    )
    result = rewritten(model)
    assert operators(result) == ["Reshape", "Transpose", "Reshape", "Relu"]
    assert_same_numbers(model, result, exact=True)


@BATCHES
def test_a_move_and_its_inverse_are_nothing(n: str) -> None:
    assert_rewrites(
        f"""g (float[{n},20,4,6] x) => (float[{n},20,4,6] y) {{
            a = DepthToSpace<blocksize=2>(x)
            b = SpaceToDepth<blocksize=2>(a)
            y = Relu(b)
        }}""",
        f"g (float[{n},20,4,6] x) => (float[{n},20,4,6] y) {{ y = Relu(x) }}",
    )


def test_modes_are_never_confused() -> None:
    assert_kept(
        """g (float[N,20,4,6] x) => (float[N,20,4,6] y) {
            a = DepthToSpace<blocksize=2, mode="CRD">(x)
            b = SpaceToDepth<blocksize=2>(a)
            y = Relu(b)
        }"""
    )


def test_alone_or_beside_a_reshape_it_stays() -> None:
    assert_kept(
        """g (float[N,20,4,6] x) => (float[N,40,12] y) <int64[3] s = {0,40,12}> {
            a = DepthToSpace<blocksize=2>(x)
            b = Reshape(a, s)
            y = Relu(b)
        }"""
    )


def test_two_that_do_not_cancel_do_not_become_a_transpose() -> None:
    assert_kept(
        """g (float[N,32,4,6] x) => (float[N,2,16,24] y) {
            a = DepthToSpace<blocksize=2>(x)
            b = DepthToSpace<blocksize=2>(a)
            y = Relu(b)
        }"""
    )


def test_another_reader_keeps_it() -> None:
    assert_kept(
        f"""g (float[N,4,6,20] x) => (float[N,8,12,5] y, float[N,5,8,12] z) {{
            a = {TO_NCHW}(x)
            r = Relu(a)
            b = DepthToSpace<blocksize=2>(r)
            c = {TO_NHWC}(b)
            z = Relu(b)
            y = Relu(c)
        }}"""
    )


def test_symbolic_rows_of_a_space_to_depth_cannot_be_divided() -> None:
    model = parse(
        f"""g (float[N,H,12,5] x) => (float[N,20,K,6] y) {{
            a = {TO_NCHW}(x)
            b = SpaceToDepth<blocksize=2>(a)
            y = Relu(b)
        }}"""
    )
    assert operators(rewritten(model)) == ["Transpose", "SpaceToDepth", "Relu"]


# found

EXPORTED = {
    "DCR": ("{0,2,2,5,4,6}", "[0,3,4,1,5,2]", "DepthToSpace<blocksize=2>"),
    "CRD": ("{0,5,2,2,4,6}", "[0,1,4,2,5,3]", 'DepthToSpace<blocksize=2, mode="CRD">'),
}


def pixel_shuffle(n: str, mode: str, dtype: str = "float") -> str:
    split, perm, _ = EXPORTED[mode]
    return f"""g ({dtype}[{n},20,4,6] x) => ({dtype}[{n},5,8,12] y)
        <int64[6] s = {split}, int64[4] t = {{0,5,8,12}}> {{
            a = Reshape(x, s)
            b = Transpose<perm={perm}>(a)
            c = Reshape(b, t)
            y = Neg(c)
        }}"""


@BATCHES
@MODES
def test_an_exported_pixel_shuffle_is_found(mode: str, n: str) -> None:
    assert_rewrites(
        pixel_shuffle(n, mode),
        f"""g (float[{n},20,4,6] x) => (float[{n},5,8,12] y) {{
            c = {EXPORTED[mode][2]}(x)
            y = Neg(c)
        }}""",
    )


@BATCHES
def test_an_exported_space_to_depth_is_found(n: str) -> None:
    assert_rewrites(
        f"""g (float[{n},5,8,12] x) => (float[{n},20,4,6] y)
        <int64[6] s = {{0,5,4,2,6,2}}, int64[4] t = {{0,20,4,6}}> {{
            a = Reshape(x, s)
            b = Transpose<perm=[0,3,5,1,2,4]>(a)
            c = Reshape(b, t)
            y = Neg(c)
        }}""",
        f"""g (float[{n},5,8,12] x) => (float[{n},20,4,6] y) {{
            c = SpaceToDepth<blocksize=2>(x)
            y = Neg(c)
        }}""",
    )


def test_the_inverse_of_a_pixel_shuffle_has_no_operator_before_opset_28() -> None:
    model = parse(
        """g (float[N,5,8,12] x) => (float[N,20,4,6] y)
        <int64[6] s = {0,5,4,2,6,2}, int64[4] t = {0,20,4,6}> {
            a = Reshape(x, s)
            b = Transpose<perm=[0,1,3,5,2,4]>(a)
            c = Reshape(b, t)
            y = Neg(c)
        }"""
    )
    assert "Transpose" in operators(rewritten(model))


def test_the_mode_is_newer_than_the_operator() -> None:
    old = parse(pixel_shuffle("N", "CRD"), opset=10)
    assert transposes(rewritten(old)) == 1
    assert transposes(rewritten(parse(pixel_shuffle("N", "CRD"), opset=11))) == 0
    assert transposes(rewritten(parse(pixel_shuffle("N", "DCR"), opset=10))) == 0


def test_types_that_runtimes_have_no_kernel_for_stay() -> None:
    assert transposes(rewritten(parse(pixel_shuffle("N", "CRD", "int32")))) == 1


def test_another_perm_is_not_a_pixel_shuffle() -> None:
    """Rows and columns within a block change places."""
    text = pixel_shuffle("N", "CRD").replace("[0,1,4,2,5,3]", "[0,1,4,3,5,2]")
    assert transposes(rewritten(parse(text))) == 1


def test_a_pixel_shuffle_that_others_read_midway_stays() -> None:
    text = pixel_shuffle("N", "CRD").replace("y = Neg(c)", "y = Neg(c)\nz = Neg(b)")
    text = text.replace("=> (", "=> (float[N,5,4,2,6,2] z, ")
    assert transposes(rewritten(parse(text))) == 1
