"""Pairs of models that are one function, and are proved to be."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from relayout.verify.proof.proof import prove_models
from relayout.verify.proof.verdict import Ledger
from tests.verify.proof.cases import Pair, ramp, whole

W = ramp(4, 3, 2, 2)
NHWC = """
<domain: "relayout", opset_import: ["": 18]>
Conv (x, w) => (y) {
  a = Transpose <perm = [0, 3, 1, 2]> (x)
  v = Transpose <perm = [0, 3, 1, 2]> (w)
  b = Conv (a, v)
  y = Transpose <perm = [0, 2, 3, 1]> (b)
}
"""

PAIRS = {
    "a branch that is always taken": Pair(
        "float[2,3] x",
        """y = If (yes) <then_branch = t () => (float[2,3] a) { a = Relu (x) },
                         else_branch = e () => (float[2,3] b) { b = Exp (x) }>""",
        "a = Transpose (x) b = Relu (a) y = Transpose (b)",
        constants={"yes": np.array(True)},
    ),
    "a constant that a node makes": Pair(
        "float[2,3] x",
        "c = Constant <value = float[2,3] {1,2,3,4,5,6}> () y = Add (x, c)",
        """c = Constant <value = float[3,2] {1,4,2,5,3,6}> () a = Transpose (x)
           b = Add (a, c) y = Transpose (b)""",
    ),
    "cancelling transposes through Relu, Mul and Add": Pair(
        "float[2,3,4,5] x, float[4,1] s, float[5] t",
        """a = Transpose <perm = [0,2,3,1]> (x)
           b = Relu (a)
           s1 = Reshape (s, s_form)
           c = Mul (b, s1)
           t1 = Reshape (t, t_form)
           d = Add (t1, c)
           y = Transpose <perm = [0,3,1,2]> (d)""",
        "a = Relu (x) b = Mul (s, a) y = Add (b, t)",
        constants={"s_form": whole(4, 1, 1), "t_form": whole(1, 5, 1)},
    ),
    "two transposes as one": Pair(
        "float[2,3,4] x",
        "a = Transpose <perm = [1,2,0]> (x) y = Transpose <perm = [1,2,0]> (a)",
        "y = Transpose <perm = [2,0,1]> (x)",
    ),
    "Concat along the axis that was moved": Pair(
        "float[2,3,4] x, float[2,5,4] z",
        """a = Transpose <perm = [0,2,1]> (x) b = Transpose <perm = [0,2,1]> (z)
           c = Concat <axis = 2> (a, b) y = Transpose <perm = [0,2,1]> (c)""",
        "y = Concat <axis = -2> (x, z)",
    ),
    "Softmax along the axis that was moved": Pair(
        "float[3,3,3] x",
        """a = Transpose <perm = [1,2,0]> (x) b = Softmax <axis = 2> (a)
           y = Transpose <perm = [2,0,1]> (b)""",
        "y = Softmax <axis = 0> (x)",
    ),
    "ReduceMean over the axes that were moved": Pair(
        "float[2,3,4,5] x",
        """a = Transpose <perm = [0,2,3,1]> (x) b = ReduceMean <keepdims = 1> (a, inner)
           y = Transpose <perm = [0,3,1,2]> (b)""",
        "y = GlobalAveragePool (x)",
        constants={"inner": whole(1, 2)},
    ),
    "weights of a convolution in another order": Pair(
        "float[1,3,5,5] x",
        "y = Conv (x, w)",
        """a = Transpose <perm = [0,2,3,1]> (x)
           b = relayout.Conv (a, w)
           y = Transpose <perm = [0,3,1,2]> (b)""",
        constants={"w": W, "w'": np.ascontiguousarray(W.transpose(0, 2, 3, 1))},
        functions=NHWC,
    ),
    "Gemm with a transposed constant": Pair(
        "float[2,3] x",
        "y = Gemm <transB = 1> (x, w)",
        "y = MatMul (x, w)",
        constants={"w": ramp(4, 3), "w'": np.ascontiguousarray(ramp(4, 3).T)},
    ),
    "rows of a constant behind a Flatten": Pair(
        "float[2,3,2,2] x",
        "a = Flatten (x) y = Gemm (a, w)",
        "t = Transpose <perm = [0,2,3,1]> (x) a = Flatten (t) y = Gemm (a, w)",
        constants={
            "w": ramp(12, 4),
            "w'": ramp(3, 2, 2, 4).transpose(1, 2, 0, 3).reshape(12, 4),
        },
    ),
    "a convolution of one place as a product": Pair(
        "float[2,3,4,5] x",
        "y = Conv (x, w)",
        """a = Transpose <perm = [0,2,3,1]> (x) b = MatMul (a, w)
           y = Transpose <perm = [0,3,1,2]> (b)""",
        constants={"w": ramp(6, 3, 1, 1), "w'": np.ascontiguousarray(ramp(6, 3).T)},
    ),
    "Einsum as a product": Pair(
        "float[2,3,4] x, float[2,5,4] z",
        'y = Einsum <equation = "bij,bkj->bki"> (x, z)',
        "t = Transpose <perm = [0,2,1]> (x) y = MatMul (z, t)",
    ),
    "a product transposed": Pair(
        "float[3,3] x, float[3,3] z",
        "a = MatMul (x, z) y = Transpose (a)",
        "a = Transpose (x) b = Transpose (z) y = MatMul (b, a)",
    ),
    "groups of a convolution as products of batches": Pair(
        "float[1,6,2,3] x",
        "y = Conv <group = 2> (x, w)",
        """a = Reshape (x, apart) b = MatMul (w, a) y = Reshape (b, together)""",
        constants={
            "w": ramp(4, 3, 1, 1),
            "w'": ramp(2, 2, 3),
            "apart": whole(1, 2, 3, 6),
            "together": whole(1, 4, 2, 3),
        },
    ),
    "a depthwise convolution of one place as Mul": Pair(
        "float[1,4,2,3] x",
        "y = Conv <group = 4> (x, w)",
        "y = Mul (x, w)",
        constants={"w": ramp(4, 1, 1, 1), "w'": ramp(4, 1, 1)},
    ),
    "views by way of other cuts": Pair(
        "float[12] x",
        "a = Reshape (x, one) b = Transpose (a) c = Transpose (b) y = Reshape (c, end)",
        "a = Reshape (x, other) y = Reshape (a, end)",
        constants={"one": whole(6, 2), "other": whole(2, 6), "end": whole(2, 3, 2)},
    ),
    "a Reshape between two Transposes": Pair(
        "float[4,6] x",
        """a = Reshape (x, split) b = Transpose <perm = [2,0,1]> (a) c = Reshape (b, merged)
           y = Transpose (c)""",
        """a = Reshape (x, rows) b = Transpose <perm = [0,2,1]> (a)
           c = Transpose <perm = [0,2,1]> (b) y = Reshape (c, end)""",
        constants={
            "split": whole(4, 2, 3),
            "merged": whole(3, 8),
            "rows": whole(8, 3, 1),
            "end": whole(8, 3),
        },
    ),
    "unit axes moved or reshaped": Pair(
        "float[3,1,4] x",
        "y = Transpose <perm = [1,0,2]> (x)",
        "a = Squeeze (x, one) y = Unsqueeze (a, zero)",
        constants={"one": whole(1), "zero": whole(0)},
    ),
    "parts of two axes in either order": Pair(
        "float[4,6] x",
        "a = Slice (x, one, three, zero) y = Slice (a, zero, two, one)",
        "a = Slice (x, zero, two, one) y = Slice (a, one, three, zero)",
        constants={"zero": whole(0), "one": whole(1), "two": whole(2), "three": whole(3)},
    ),
    "a part as Split and as Gather": Pair(
        "float[4,6] x",
        "a, b, c = Split <axis = 1> (x, thirds) d = Gather <axis = 0> (b, two) y = Relu (d)",
        "a = Slice (x, two, three, zero) b = Slice (a, two, four, one) y = Relu (b)",
        constants={
            "thirds": whole(2, 2, 2),
            "zero": whole(0),
            "one": whole(1),
            "two": whole(2),
            "three": whole(3),
            "four": whole(4),
        },
    ),
    "branches that move axes": Pair(
        "bool c, float[2,3] x",
        """y = If (c) <
             then_branch = a () => (float[2,3] p) { p = Relu (x) },
             else_branch = b () => (float[2,3] q) { q = Neg (x) }>""",
        """t = Transpose (x)
           z = If (c) <
             then_branch = a () => (float[3,2] p) { p = Relu (t) },
             else_branch = b () => (float[3,2] q) { q = Neg (t) }>
           y = Transpose (z)""",
    ),
    "a loop that carries its state transposed": Pair(
        "float[2,3] x, float[2,3] s, int64 n, bool c",
        """y = Loop (n, c, x) <
             body = b (int64 i, bool g, float[2,3] p) => (bool go, float[2,3] q) {
               go = Identity (g) r = Relu (p) q = Add (r, s) }>""",
        """t = Transpose (x)
           z = Loop (n, c, t) <
             body = b (int64 i, bool g, float[3,2] p) => (bool go, float[3,2] q) {
               go = Identity (g) r = Relu (p) u = Transpose (s) q = Add (r, u) }>
           y = Transpose (z)""",
        runs=False,  # a drawn trip count says little
    ),
    "scales along an axis that was moved": Pair(
        "float[2,3,4] x",
        """a = Transpose <perm = [0,2,1]> (x)
           q = QuantizeLinear <axis = 2> (a, s, z) d = DequantizeLinear <axis = 2> (q, s, z)
           y = Transpose <perm = [0,2,1]> (d)""",
        "q = QuantizeLinear <axis = 1> (x, s, z) y = DequantizeLinear <axis = 1> (q, s, z)",
        constants={
            "s": np.array([0.5, 0.25, 2.0], np.float32),
            "z": np.array([1, 2, 3], np.uint8),
        },
        opset=21,
    ),
    "open lengths and the arithmetic on them": Pair(
        "float[n,m,6] x",
        """s = Shape (x) a = Gather (s, zero) b = Gather (s, one) r = Mul (a, b)
           r1 = Unsqueeze (r, zero) form = Concat <axis = 0> (r1, six)
           f = Reshape (x, form) g = Relu (f) y = Reshape (g, s)""",
        "y = Relu (x)",
        constants={
            "zero": np.array(0, np.int64),
            "one": np.array(1, np.int64),
            "six": whole(6),
        },
    ),
    "a Reshape with -1 of open lengths": Pair(
        "float[n,m,6] x",
        "a = Reshape (x, rows) b = Transpose (a) y = Transpose (b)",
        "s = Shape <start = 0, end = 2> (x) p = ReduceProd (s, zero) f = Concat <axis = 0> (p, six)"
        " y = Reshape (x, f)",
        constants={"rows": whole(-1, 6), "zero": whole(0), "six": whole(6)},
    ),
    "Expand ahead of an operator or by it": Pair(
        "float[1,3] x, float[n,3] z",
        "s = Shape (z) a = Expand (x, s) y = Add (a, z)",
        "y = Add (x, z)",
    ),
    "constants computed or given": Pair(
        "float[2,3] x",
        "a = Add (p, q) b = Transpose (a) y = Mul (x, b)",
        "y = Mul (x, p)",
        constants={"p": ramp(3, 2), "q": ramp(3, 2), "p'": np.ascontiguousarray(ramp(3, 2).T * 2)},
    ),
    "the first place of an open axis": Pair(
        "float[n,3] x",
        "a = Gather <axis = 0> (x, zero) y = Relu (a)",
        "a = Slice (x, first, one, first) b = Squeeze (a, first) y = Relu (b)",
        constants={"zero": np.array(0, np.int64), "first": whole(0), "one": whole(1)},
    ),
    "lengths by remainders and differences": Pair(
        "float[n,6] x",
        """s = Shape (x) a = Gather (s, zero) b = Mod (six, four) c = Sub (six, four) d = Mul (b, c)
           e = Sub (d, two) f = Concat <axis = 0> (a, e, three) y = Reshape (x, f)""",
        "y = Reshape (x, form)",
        constants={
            "zero": whole(0),
            "two": whole(2),
            "three": whole(3),
            "four": whole(4),
            "six": whole(6),
            "form": whole(-1, 2, 3),
        },
    ),
    "a sum of merged axes": Pair(
        "float[2,3,4] x, float[2,3,4] z",
        "a = Add (x, z) y = Reshape (a, merged)",
        "a = Reshape (x, merged) b = Reshape (z, merged) y = Add (a, b)",
        constants={"merged": whole(6, 4)},
    ),
    "an index made of two, and another of the same two": Pair(
        "float[3] x, float[3] z",
        """d = Sub (x, z) c = Unsqueeze (d, one) e = Mul (c, x) f = Mul (c, z) y = Sub (e, f)""",
        """d = Sub (x, z) c = Unsqueeze (d, one) e = Mul (c, x) f = Mul (c, z)
           t = Transpose (e) u = Transpose (f) v = Sub (t, u) y = Transpose (v)""",
        constants={"one": whole(1)},
    ),
    "paddings of the first version": Pair(
        "float[2,3] x",
        "y = Pad <paddings = [0, 1, 2, 0]> (x)",
        "a = Transpose (x) b = Pad <paddings = [1, 0, 0, 2]> (a) y = Transpose (b)",
        opset=1,
        runs=False,
    ),
    "zeros of a shape, and counted numbers": Pair(
        "float[2,3] x",
        """z = ConstantOfShape (f) a = Add (x, z) r = Range (one, four, one)
           c = Cast <to = 1> (r) y = Mul (a, c)""",
        "a = Add (x, w) y = Mul (a, k)",
        constants={
            "f": whole(2, 3),
            "one": np.array(1, np.int64),
            "four": np.array(4, np.int64),
            "w'": np.zeros((2, 3), np.float32),
            "k'": np.array([1, 2, 3], np.float32),
        },
    ),
    "numbers counted up to an open length": Pair(
        "float[n,3] x",
        """s = Shape (x) l = Gather (s, zero) r = Range (zero, l, one) c = Cast <to = 1> (r)
           u = Unsqueeze (c, first) y = Mul (x, u)""",
        """t = Transpose (x) s = Shape (t) l = Gather (s, one) r = Range (zero, l, one)
           c = Cast <to = 1> (r) a = Mul (c, t) y = Transpose (a)""",
        constants={
            "zero": np.array(0, np.int64),
            "one": np.array(1, np.int64),
            "first": whole(1),
        },
    ),
    "the last place, counted from either end": Pair(
        "float[2,4] x",
        "y = Gather <axis = 1> (x, last)",
        "y = Slice (x, three, four, one)",
        constants={"last": whole(-1), "three": whole(3), "four": whole(4), "one": whole(1)},
    ),
    "a part of nothing between others": Pair(
        "float[2,3] x, float[4,3] w",
        "y = Concat <axis = 0> (x, none, w)",
        "y = Concat <axis = 0> (x, w)",
        constants={"none": np.zeros((0, 3), np.float32)},
    ),
    "texts in another order": Pair(
        "string[2,3] x",
        "e = Equal (x, c) y = Cast <to = 1> (e)",
        "t = Transpose (x) e = Equal (t, c) f = Cast <to = 1> (e) y = Transpose (f)",
        constants={
            "c": np.array([["a", "b", "c"], ["d", "e", "f"]], object),
            "c'": np.array([["a", "d"], ["b", "e"], ["c", "f"]], object),
        },
        runs=False,
    ),
    "a loop without a count": Pair(
        "float[2,3] x, bool c",
        """y = Loop ( , c, x) <body = b (int64 i, bool g, float[2,3] p) => (bool go, float[2,3] q)
             { go = Not (g) q = Relu (p) }>""",
        """t = Transpose (x)
           z = Loop ( , c, t) <body = b (int64 i, bool g, float[3,2] p) => (bool go, float[3,2] q)
             { go = Not (g) q = Relu (p) }>
           y = Transpose (z)""",
        runs=False,
    ),
    "a constant that repeats along an axis": Pair(
        "float[3,4,2] x",
        "y = Add (x, c)",
        "y = Add (x, c)",
        constants={"c": ramp(3, 1, 2), "c'": np.repeat(ramp(3, 1, 2), 4, axis=1)},
    ),
    "a constant transposed and merged": Pair(
        "float[6] x",
        "a = Transpose (c) b = Reshape (a, six) y = Add (x, b)",
        "y = Add (x, c)",
        constants={"c": ramp(2, 3), "c'": ramp(2, 3).T.reshape(6), "six": whole(6)},
    ),
    "DepthToSpace written out": Pair(
        "float[1,8,2,3] x",
        "y = DepthToSpace <blocksize = 2> (x)",
        "a = Reshape (x, apart) b = Transpose <perm = [0,3,4,1,5,2]> (a) y = Reshape (b, end)",
        constants={"apart": whole(1, 2, 2, 2, 2, 3), "end": whole(1, 2, 4, 6)},
    ),
    "Pad of an axis that was moved": Pair(
        "float[2,3] x",
        "a = Transpose (x) b = Pad (a, one) y = Transpose (b)",
        "y = Pad (x, other)",
        constants={"one": whole(0, 1, 2, 0), "other": whole(1, 0, 0, 2)},
    ),
    "draws that are called the same": Pair(
        "float[2,3] x",
        "[draw] r = RandomNormal <shape = [2,3], seed = 1.0> () y = Add (x, r)",
        "[draw] z = RandomNormal <shape = [2,3], seed = 1.0> () a = Identity (x) y = Add (a, z)",
        runs=False,
    ),
}


def test_a_constant_of_many_blocks_is_read_whole(tmp_path: Path) -> None:
    """In another order it is the same; with another number anywhere it is not."""
    held = np.random.default_rng(0).integers(-9, 9, (3, 3, 130_000)).astype(np.float16)
    for place in (None, 0, held.size // 2, held.size - 1):
        stored = held.transpose(1, 2, 0).copy()
        if place is not None:
            stored.flat[place] += 1
        pair = Pair(
            "float16[3,3,130000] x",
            "y = Add (x, c)",
            "t = Transpose <perm = [1,2,0]> (x) a = Add (t, c) y = Transpose <perm = [2,0,1]> (a)",
            constants={"c": held, "c'": stored},
        )
        assert pair.proof(tmp_path).identical == (place is None)


def test_the_standard_may_be_named_in_full() -> None:
    """Also where its version decides what an operator is."""
    text = """<ir_version: 9, opset_import: ["NAME": 11]>
        g (float[2,3,4] x) => (float[2,3,4] y) { y = Softmax <axis = 1> (x) }"""
    short, full = (onnx.parser.parse_model(text.replace("NAME", n)) for n in ("", "ai.onnx"))
    full.graph.node[0].domain = "ai.onnx"
    new = onnx.parser.parse_model(text.replace("NAME", "").replace("11", "13"))
    assert prove_models(short, full).identical
    assert not prove_models(full, new).holds


def test_lengths_without_names_may_differ() -> None:
    text = """<ir_version: 9, opset_import: ["": 18]>
        g (float[N,3] x, float[N,3] z) => (float[N,3] y) <int64[1] zero = {0}, int64[1] three = {3}>
        { s = Shape (x) n = Gather (s, zero) f = Concat <axis = 0> (n, three) y = BODY }"""
    for name, is_one in (("n", True), ("", False), ("?", False)):
        bodies = ("Relu (z)", "Relu (r) r = Reshape (z, f)")
        models = [onnx.parser.parse_model(text.replace("BODY", body)) for body in bodies]
        for model in models:
            for port in model.graph.input:
                port.type.tensor_type.shape.dim[0].dim_param = name.replace("N", "")
        assert prove_models(*models).identical == is_one


RUN_TIME = {
    "Reshape": "a = Reshape (x, s)",
    "Expand": "a = Expand (x, s)",
    "ConstantOfShape": "a = ConstantOfShape (s)",
    "NonZero": "b = NonZero (x) a = Cast <to = 1> (b)",
    "Tile": "a = Tile (x, s)",
    "Slice": "a = Slice (x, s, t)",
    "Pad": "a = Pad (x, p)",
    "TopK": "a, i = TopK (x, k)",
    "NonMaxSuppression": "b = NonMaxSuppression (z, z, k) a = Cast <to = 1> (b)",
}


@pytest.mark.parametrize("name", RUN_TIME)
def test_what_only_a_run_tells_has_a_rank(name: str, tmp_path: Path) -> None:
    """Known enough for the Transposes around what follows it."""
    inputs = "float[2,3] x, int64[2] s, int64[2] t, int64[4] p, int64[1] k, float[1,3,4] z"
    after = "b2 = Transpose <perm = [1,0]> (a) c = Relu (b2) y = Transpose <perm = [1,0]> (c)"
    pair = Pair(inputs, f"{RUN_TIME[name]} y = Relu (a)", f"{RUN_TIME[name]} {after}")
    assert pair.proof(tmp_path).identical


@pytest.mark.parametrize("name", ["n", "?n", "#n", "##n", "n*n", "min(2, n)"])
def test_a_length_may_have_any_name(name: str) -> None:
    """What the proof calls lengths itself is nothing that a model could call one."""
    text = """<ir_version: 9, opset_import: ["": 18]>
        g (float[n,4] x) => (float y) <int64[1] zero = {0}, int64[1] two = {2}, int64[1] four = {4},
        int64[2] rows = {-1, 2}> { BODY }"""
    before = "y = Reshape (x, rows)"
    after = """s = Shape (x) n = Gather (s, zero) m = Mul (n, four) h = Div (m, two)
        f = Concat <axis = 0> (h, two) y = Reshape (x, f)"""
    models = [onnx.parser.parse_model(text.replace("BODY", body)) for body in (before, after)]
    for model in models:
        model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = name
    proof = prove_models(*models)
    assert proof.identical
    assert not proof.conditions


@pytest.mark.parametrize("name", PAIRS)
def test_proved(name: str, tmp_path: Path) -> None:
    proof = PAIRS[name].proof(tmp_path)
    assert proof.identical, proof.summary()
    assert proof.conditions == ()
    assert proof.summary() == "proved identical"


@pytest.mark.parametrize("name", [name for name, pair in PAIRS.items() if pair.runs])
def test_proved_pairs_are_one_function(name: str) -> None:
    one, other = PAIRS[name].results()
    np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)


def test_a_ledger_of_many_kinds_is_told_in_a_line() -> None:
    few = Ledger({"scales folded": 2, "sums in another association": 1})
    assert str(few) == "2 scales folded, 1 sums in another association"
    many = Ledger({"a": 1, "b": 7, "c": 2, "d": 5})
    assert str(many) == "15 steps that only change rounding (7 b, 5 d, 2 other kinds)"
