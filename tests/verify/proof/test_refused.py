"""Pairs of models that differ, though a careless proof would take them for one function."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from relayout.verify.proof.proof import prove_models
from tests.verify.proof.cases import Array, Pair, ramp, whole

SQUARE = np.array([[1, 2, 3], [4, 5, 6], [7, 8, 10]], np.float32)
FORMS = {"column": whole(-1, 1), "row": whole(1, -1)}


def _transposed(inputs: str, made: str, constants: Mapping[str, Array] | None = None) -> Pair:
    """What is made as z, against its own transpose."""
    before, after = f"{made} y = Identity (z)", f"{made} y = Transpose (z)"
    return Pair(inputs, before, after, constants=constants or {})


CAPTURED = {
    "x - x^T": _transposed("float[3,3] x", "t = Transpose (x) z = Sub (x, t)"),
    "x D x^T": _transposed(
        "float[4,3] x",
        "t = Transpose (x) a = MatMul (x, d) z = MatMul (a, t)",
        constants={"d": SQUARE},
    ),
    "the outer difference of a vector": _transposed(
        "float[3,1] x", "t = Transpose (x) z = Sub (x, t)"
    ),
    "an index made of two, and another of the same two": _transposed(
        "float[3] x, float[3] w",
        "d = Sub (x, w) c = Unsqueeze (d, one) e = Mul (c, x) f = Mul (c, w) z = Div (e, f)",
        constants={"one": whole(1)},
    ),
    "the outer difference of a padded vector": _transposed(
        "float[3] x",
        """p = Pad (x, ends) a = Reshape (p, column) b = Reshape (x, row) d = Sub (a, b)
           z = Pad (d, sides)""",
        constants={**FORMS, "ends": whole(1, 1), "sides": whole(0, 1, 0, 1)},
    ),
    "the outer difference of a part": _transposed(
        "float[5] x",
        """p = Slice (x, one, three) a = Reshape (p, column) b = Reshape (x, row) d = Sub (a, b)
           z = Slice (d, one, three, one)""",
        constants={**FORMS, "one": whole(1), "three": whole(3)},
    ),
    "the outer difference of what is put together": _transposed(
        "float[2] x, float[3] w",
        """c = Concat <axis = 0> (x, w) a = Reshape (c, column)
           p = Reshape (x, row) q = Reshape (w, row) d = Sub (a, p) e = Sub (a, q)
           z = Concat <axis = 1> (d, e)""",
        constants=FORMS,
    ),
    "the outer difference of what is counted anew": _transposed(
        "float[3,5] x",
        """t = Transpose (x) f = Reshape (t, form) a = Reshape (f, column)
           u = Reshape (t, unit) d = Sub (a, u) e = Reshape (d, apart) z = Reshape (e, square)""",
        constants={
            "column": whole(15, 1, 1),
            "unit": whole(1, 5, 3),
            "form": whole(3, 5),
            "apart": whole(15, 3, 5),
            "square": whole(15, 15),
        },
    ),
}

OTHERS = {
    "a broadcast along another axis": Pair(
        "float[3,3] x, float[3,1] s",
        "y = Add (x, s)",
        "t = Transpose (s) y = Add (x, t)",
    ),
    "another order of axes": Pair(
        "float[3,3,3] x",
        "y = Transpose <perm = [1,2,0]> (x)",
        "y = Transpose <perm = [2,0,1]> (x)",
    ),
    "the operands of Sub": Pair("float[3] x, float[3] s", "y = Sub (x, s)", "y = Sub (s, x)"),
    "the operands of Div": Pair("float[3] x, float[3] s", "y = Div (x, s)", "y = Div (s, x)"),
    "the operands of MatMul": Pair(
        "float[3,3] x, float[3,3] s", "y = MatMul (x, s)", "y = MatMul (s, x)"
    ),
    "another stride": Pair(
        "float[1,1,6,6] x",
        "y = MaxPool <kernel_shape = [2,2], strides = [1,2], pads = [0,0,0,0]> (x)",
        "y = MaxPool <kernel_shape = [2,2], strides = [2,1], pads = [0,0,0,0]> (x)",
    ),
    "other pads": Pair(
        "float[1,3,5,5] x",
        "y = Conv <pads = [1,1,0,0]> (x, w)",
        "y = Conv <pads = [0,0,1,1]> (x, w)",
        constants={"w": ramp(4, 3, 2, 2)},
    ),
    "a kernel with its axes swapped": Pair(
        "float[1,3,5,5] x",
        "y = Conv (x, w)",
        "y = Conv (x, w)",
        constants={"w": ramp(4, 3, 2, 2), "w'": ramp(4, 3, 2, 2).transpose(0, 1, 3, 2).copy()},
    ),
    "another axis of ArgMax": Pair(
        "float[3,3] x",
        "a = ArgMax <axis = 0, keepdims = 0> (x) y = Cast <to = 1> (a)",
        "a = ArgMax <axis = 1, keepdims = 0> (x) y = Cast <to = 1> (a)",
    ),
    "another epsilon": Pair(
        "float[2,3,4] x",
        "y = InstanceNormalization <epsilon = 0.1> (x, s, s)",
        "y = InstanceNormalization <epsilon = 0.2> (x, s, s)",
        constants={"s": ramp(3)},
    ),
    "another mode": Pair(
        "float[1,1,2,2] x",
        'y = Resize <mode = "nearest"> (x, , f)',
        'y = Resize <mode = "linear"> (x, , f)',
        constants={"f": np.array([1, 1, 2, 2], np.float32)},
    ),
    "another order of a constant's rows": Pair(
        "float[2,3] x",
        "y = MatMul (x, w)",
        "y = MatMul (x, w)",
        constants={"w": ramp(3, 3), "w'": ramp(3, 3)[::-1].copy()},
    ),
    "a Softmax along another axis": Pair(
        "float[3,3] x", "y = Softmax <axis = 0> (x)", "y = Softmax <axis = 1> (x)"
    ),
    "a Reshape after another order": Pair(
        "float[2,2,3] x",
        "y = Reshape (x, form)",
        "t = Transpose <perm = [1,0,2]> (x) y = Reshape (t, form)",
        constants={"form": whole(4, 3)},
    ),
    "branches swapped": Pair(
        "bool c, float[3] x",
        """y = If (c) < then_branch = a () => (float[3] p) { p = Relu (x) },
                        else_branch = b () => (float[3] q) { q = Neg (x) }>""",
        """y = If (c) < then_branch = a () => (float[3] p) { p = Neg (x) },
                        else_branch = b () => (float[3] q) { q = Relu (x) }>""",
    ),
    "a factor that is a little larger": Pair(
        "float[3] x",
        "y = Mul (x, w)",
        "y = Mul (x, w)",
        constants={"w": np.array([0.5], np.float32), "w'": np.array([0.6], np.float32)},
    ),
    "zeros of another sign": Pair(
        "float[2] x",
        "y = Div (x, c)",
        "y = Div (x, c)",
        constants={"c": np.array([0, 1], np.float32), "c'": np.array([-0.0, 1], np.float32)},
    ),
    "every second place of an open axis": Pair(
        "float[m,3] x",
        "y = Slice (x, zero, all, zero, two)",
        "y = Identity (x)",
        constants={"zero": whole(0), "two": whole(2), "all": whole(2**31 - 1)},
    ),
    "a Tile for an Expand": Pair(
        "float[2,3] x",
        "y = Tile (x, two)",
        "a = Unsqueeze (x, last) b = Expand (a, form) y = Reshape (b, flat)",
        constants={
            "two": whole(1, 2),
            "last": whole(2),
            "form": whole(2, 3, 2),
            "flat": whole(2, 6),
        },
    ),
    "two unit axes padded or one": Pair(
        "float[1] x",
        "a = Pad (x, one) b = Expand (a, form) y = Identity (b)",
        "a = Reshape (x, unit) y = Pad (a, both)",
        constants={
            "one": whole(0, 1),
            "form": whole(2, 2),
            "unit": whole(1, 1),
            "both": whole(0, 0, 1, 1),
        },
    ),
}

NOT_RUN = {
    "a norm along no axis": Pair(
        "float[2,3] x",
        "y = ReduceL1 <noop_with_empty_axes = 1> (x)",
        "y = Identity (x)",
        opset=18,
    ),
    "an attribute that no rule knows": Pair(
        "float[2,3] x",
        "y = Transpose <perm = [1, 0], reading = 1> (x)",
        "y = Transpose <perm = [1, 0], reading = 2> (x)",
    ),
    "a loop with another state": Pair(
        "float[3,3] x, int64 n, bool c",
        """y = Loop (n, c, x) <
             body = b (int64 i, bool g, float[3,3] p) => (bool go, float[3,3] q) {
             go = Identity (g) q = Relu (p) }>""",
        """y = Loop (n, c, x) <
             body = b (int64 i, bool g, float[3,3] p) => (bool go, float[3,3] q) {
             go = Identity (g) r = Relu (p) q = Transpose (r) }>""",
    ),
    "two states of a loop swapped": Pair(
        "float[3] x, float[3] s, int64 n, bool c",
        """y, w = Loop (n, c, x, s) <
             body = b (int64 i, bool g, float[3] p, float[3] r)
               => (bool go, float[3] q, float[3] t) {
               go = Identity (g) q = Relu (p) t = Neg (r) }>""",
        """y, w = Loop (n, c, x, s) <
             body = b (int64 i, bool g, float[3] p, float[3] r)
               => (bool go, float[3] q, float[3] t) {
               go = Identity (g) q = Neg (r) t = Relu (p) }>""",
    ),
    "a state, and what it began as": Pair(
        "float[3] x, int64 n, bool c",
        """y = Loop (n, c, x) <body = b (int64 i, bool g, float[3] p) => (bool go, float[3] q) {
             go = Identity (g) q = Add (p, x) }>""",
        """y = Loop (n, c, x) <body = b (int64 i, bool g, float[3] p) => (bool go, float[3] q) {
             go = Identity (g) q = Add (x, x) }>""",
    ),
    "a scanned state, and what it began as": Pair(
        "float[3] x, float[4,3] w",
        """y, o = Scan <num_scan_inputs = 1, body = b (float[3] p, float[3] v)
             => (float[3] q, float[3] r) { q = Add (p, x) r = Identity (v) }> (x, w)""",
        """y, o = Scan <num_scan_inputs = 1, body = b (float[3] p, float[3] v)
             => (float[3] q, float[3] r) { q = Add (x, x) r = Identity (v) }> (x, w)""",
    ),
    "axes of what a loop makes more of, counted from either end": Pair(
        "float[2,2] x, int64 n, bool c",
        """a = Loop (n, c, x) <body = b (int64 i, bool g, float[2,2] p) => (bool go, float[1,2,2] q)
             { go = Identity (g) q = Unsqueeze (p, zero) }>
           y = ReduceSum (a, one)""",
        """a = Loop (n, c, x) <body = b (int64 i, bool g, float[2,2] p) => (bool go, float[1,2,2] q)
             { go = Identity (g) q = Unsqueeze (p, zero) }>
           y = ReduceSum (a, last)""",
        constants={"zero": whole(0), "one": whole(1), "last": whole(-1)},
    ),
    "axes of what another domain makes, counted from either end": Pair(
        "float[2,2] x",
        "a = own.Concat (x) y = ReduceSum (a, one)",
        "a = own.Concat (x) y = ReduceSum (a, last)",
        constants={"one": whole(1), "last": whole(-1)},
    ),
    "two draws for one": Pair(
        "float[3] x",
        "a = RandomNormal <shape = [3]> () b = RandomNormal <shape = [3]> () y = Sub (a, b)",
        "a = RandomNormal <shape = [3]> () y = Sub (a, a)",
    ),
    "draws with other settings": Pair(
        "float[3] x",
        "[draw] a = RandomNormalLike <seed = 1.0> (x) y = Add (a, x)",
        "[draw] a = RandomNormalLike <seed = 2.0> (x) y = Add (a, x)",
    ),
    "one Dropout that learns for two": Pair(
        "float[3] x",
        "a = Dropout (x, half, yes) b = Dropout (x, half, yes) y = Sub (a, b)",
        "a = Dropout (x, half, yes) y = Sub (a, a)",
        constants={"half": np.array(0.5, np.float32), "yes": np.array(True)},
    ),
    "operands aligned from an axis on, as of old": Pair(
        "float[3,3,3] x, float[3] s",
        "y = Add <axis = 1, broadcast = 1> (x, s)",
        """t = Transpose <perm = [1,0,2]> (x) a = Add <axis = 1, broadcast = 1> (t, s)
           y = Transpose <perm = [1,0,2]> (a)""",
        opset=6,
    ),
    "what only a branch needs says nothing about the lengths": Pair(
        "bool c, float[n,3] x",
        """a = If (c) <
             then_branch = p () => (float[n,3] u) { f = Constant <value_ints = [2, 3]> ()
               u = Reshape (x, f) },
             else_branch = q () => (float[n,3] w) { w = Neg (x) }>
           y = Relu (x)""",
        """f = Constant <value_ints = [2, 3]> () r = Reshape (x, f) y = Relu (r)""",
    ),
    "nearly the same number, where proved identical": Pair(
        "float[3] x",
        "y = Mul (x, w)",
        "y = Mul (x, w)",
        constants={
            "w": np.array([0.1], np.float32),
            "w'": np.nextafter(np.array([0.1], np.float32), np.float32(1)),
        },
    ),
}


@pytest.mark.parametrize("name", [*CAPTURED, *OTHERS, *NOT_RUN])
def test_refused(name: str, tmp_path: Path) -> None:
    pair = {**CAPTURED, **OTHERS, **NOT_RUN}[name]
    proof = pair.proof(tmp_path)
    assert not proof.identical, proof.summary()
    if not proof.holds:
        assert proof.summary().startswith("not proved for 1 of 1 outputs")


def test_keys_that_are_hidden_are_as_many_as_queries(tmp_path: Path) -> None:
    """ONNX Runtime hides other keys than those after a query where there are more of them."""
    body = "y = com.microsoft.MultiHeadAttention <num_heads = 2, unidirectional = 1> (q, k, v)"
    for keys, is_known in ((3, True), (5, False)):
        sides = f"float[2,3,8] q, float[2,{keys},8] k, float[2,{keys},8] v"
        assert (Pair(sides, body, body).proof(tmp_path).not_known == ()) == is_known


def test_an_attention_without_keys_is_not_followed(tmp_path: Path) -> None:
    body = "y = com.microsoft.MultiHeadAttention <num_heads = 2> (x)"
    proof = Pair("float[2,3,4] x", body, body).proof(tmp_path)
    assert proof.not_known == ("MultiHeadAttention without keys or values",)


@pytest.mark.parametrize("name", [*CAPTURED, *OTHERS])
def test_refused_pairs_differ(name: str) -> None:
    one, other = {**CAPTURED, **OTHERS}[name].results()
    assert one.shape != other.shape or not np.allclose(one, other, 1e-5, 1e-5)


@pytest.mark.parametrize("name", [*CAPTURED, *OTHERS])
def test_a_refusal_is_for_what_differs(name: str, tmp_path: Path) -> None:
    """Each model is followed as a whole, and proved equal to itself."""
    pair = {**CAPTURED, **OTHERS}[name]
    held = {name: array for name, array in pair.constants.items() if not name.endswith("'")}
    for body in (pair.before, pair.after):
        proof = Pair(pair.inputs, body, body, pair.opset, held).proof(tmp_path)
        assert proof.identical
        assert proof.not_known == ()


@pytest.mark.parametrize(
    ("given", "made"),
    [
        ("AveragePool<kernel_shape=[2], strides=[1]>(x)", "strides=[0]"),
        ('LpPool<kernel_shape=[2], strides=[1], auto_pad="SAME_LOWER">(x)', "strides=[0]"),
        ("MaxPool<kernel_shape=[2], strides=[1]>(x)", "strides=[0]"),
        ("SpaceToDepth<blocksize=1>(u)", "blocksize=0"),
        ("DepthToSpace<blocksize=1>(u)", "blocksize=0"),
    ],
)
def test_a_step_of_nothing_is_not_followed(given: str, made: str) -> None:
    """No model of its own is meant by it; that is said, and is no fault of the prover."""
    name = made.partition("=")[0]
    start = given.index(name)
    end = min(i for i in (given.find(",", start), given.find(">", start)) if i >= 0)
    before = "shape = Constant<value_ints=[2, 2, 3, 3]>() u = Reshape (w, shape)"
    stepless = given[:start] + made + given[end:]
    sides = "float[1,2,6] x, float[36] w"
    pair = Pair(sides, f"{before} y = {given}", f"{before} y = {stepless}", runs=False)
    proof = prove_models(*pair.models())
    assert not proof.holds
