"""Operators and the steps that define them, sums in any association: proved up to rounding.

Each pair is also run by ONNX Runtime, so that a definition is what the runtime computes; and each
has twins that differ in one detail, which must not be proved.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest

from tests.verify.proof.cases import Array, Pair, feeds_of, ramp, whole


def number(value: float) -> Array:
    return np.array(value, np.float32)


def drawn(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).normal(0, 1, shape).astype(np.float32)


LAYER = """m = ReduceMean <axes = [-1]> (x) d = Sub (x, m) q = Pow (d, two)
    v = ReduceMean <axes = [-1]> (q) e = Add (v, eps) r = Sqrt (e) n = Div (d, r)
    s = Mul (n, g) y = Add (s, b)"""
NORM = {"two": number(2), "eps": number(1e-5), "g": drawn(6, seed=1), "b": drawn(6, seed=2)}
HEADS = {"apart": whole(0, 0, 2, 3), "joined": whole(0, 0, 6)}
ATTENTION = """a = Reshape (QUERY, apart) q1 = Transpose <perm = [0,2,1,3]> (a)
    b = Reshape (KEY, apart) k1 = Transpose <perm = [0,2,3,1]> (b)
    c = Reshape (VALUE, apart) v1 = Transpose <perm = [0,2,1,3]> (c)
    s = MatMul (q1, k1) t = Mul (s, f) SCORES p = Softmax <axis = -1> (w)
    o = MatMul (p, v1) r = Transpose <perm = [0,2,1,3]> (o) y = Reshape (r, joined)"""
SCALE = {"f": number(1 / np.sqrt(3))}


def attention(scores: str = "w = Identity (t)", **names: str) -> str:
    text = ATTENTION.replace("SCORES", scores)
    for place, name in {"QUERY": "q", "KEY": "k", "VALUE": "v", **names}.items():
        text = text.replace(place, name)
    return text


APART = "float[1,2,4,4] q, float[1,2,5,4] k, float[1,2,5,3] v"
APART_WRITTEN = """t = Transpose <perm = [0,1,3,2]> (k) a = MatMul (q, t) b = Mul (a, half)
    c = SCORES p = Softmax <axis = -1> (c) y = MatMul (p, v)"""
QKV = "float[2,4,6] q, float[2,5,6] k, float[2,5,6] v"

PAIRS = {
    "masks added in two steps": Pair(
        "float[2,3,4,4] x",
        "a = Add (x, bias) b = Reshape (a, five) c = Add (b, mask) y = Reshape (c, four)",
        "y = Add (x, both)",
        constants={
            "bias": ramp(3, 4, 4),
            "mask": np.triu(np.full((2, 1, 4, 4), -100, np.float32)),
            "both'": ramp(3, 4, 4) + np.triu(np.full((2, 1, 4, 4), -100, np.float32)),
            "five": whole(1, 2, 3, 4, 4),
            "four": whole(2, 3, 4, 4),
        },
    ),
    "a difference in another association": Pair(
        "float[2,3] x, float[2,3] z, float[2,3] u",
        "a = Sub (x, z) b = Add (a, c) y = Sub (b, u)",
        "a = Neg (z) b = Sub (a, u) d = Add (x, c) y = Add (b, d)",
        constants={"c": ramp(3)},
    ),
    "a factor past a sum and a product": Pair(
        "float[2,3] x, float[2,3] z, float[3,4] w",
        "a = Mul (x, f) b = Mul (z, f) c = Add (a, b) y = MatMul (c, w)",
        "a = Add (z, x) b = MatMul (a, w) y = Mul (b, f)",
        constants={"f": number(0.3)},
    ),
    "factors of channels put together": Pair(
        "float[2,3,4] x, float[2,3,4] z",
        "a = Mul (x, c) b = Mul (a, z) y = Mul (b, d)",
        "a = Mul (z, x) y = Mul (a, e)",
        constants={"c": ramp(3, 1), "d": drawn(4), "e'": ramp(3, 1) * drawn(4)},
    ),
    "BatchNormalization with the channels last": Pair(
        "float[2,4,5,3] x",
        """a = Transpose <perm = [0,3,1,2]> (x) b = BatchNormalization (a, g, h, m, v)
           y = Transpose <perm = [0,2,3,1]> (b)""",
        "a = Mul (x, k) y = Add (a, l)",
        constants={
            "g": drawn(3, seed=1),
            "h": drawn(3, seed=2),
            "m": drawn(3, seed=3),
            "v": np.abs(drawn(3, seed=4)) + 1,
            "k'": drawn(3, seed=1) / np.sqrt(np.abs(drawn(3, seed=4)) + 1 + np.float32(1e-5)),
            "l'": drawn(3, seed=2)
            - drawn(3, seed=3)
            * (drawn(3, seed=1) / np.sqrt(np.abs(drawn(3, seed=4)) + 1 + np.float32(1e-5))),
        },
    ),
    "LayerNormalization": Pair(
        "float[2,4,6] x",
        LAYER,
        "y = LayerNormalization (x, g, b)",
        opset=17,
        constants=NORM,
    ),
    "SkipLayerNormalization": Pair(
        "float[2,4,6] u, float[2,4,6] z",
        "w = Add (z, c) x = Add (u, w) " + LAYER,
        "y = com.microsoft.SkipLayerNormalization <epsilon = 1e-5> (u, z, g, b, c)",
        opset=17,
        constants={**NORM, "c": drawn(6, seed=5)},
    ),
    "SkipSimplifiedLayerNormalization": Pair(
        "float[2,4,6] u, float[2,4,6] z",
        """x = Add (u, z) q = Mul (x, x) v = ReduceMean <axes = [-1]> (q) e = Add (v, eps)
           r = Sqrt (e) i = Reciprocal (r) n = Mul (x, i) y = Mul (g, n)""",
        "y = com.microsoft.SkipSimplifiedLayerNormalization <epsilon = 1e-5> (u, z, g)",
        opset=17,
        constants=NORM,
    ),
    "a guard of a softmax against rows that are masked as a whole": Pair(
        "float[2,4] x",
        "p = Softmax <axis = 1> (x) n = IsNaN (p) y = Where (n, zero, p)",
        "y = Softmax <axis = 1> (x)",
        constants={"zero": number(0)},
    ),
    "Attention with a bias of scores": Pair(
        APART + ", float[4,5] m",
        APART_WRITTEN.replace("SCORES", "Add (b, m)"),
        "y = Attention (q, k, v, m)",
        opset=23,
        constants={"half": number(0.5)},
    ),
    "Attention that truth values hide": Pair(
        APART,
        APART_WRITTEN.replace("SCORES", "Add (b, h) h = Where (m, shown, hidden)"),
        "y = Attention (q, k, v, m)",
        opset=23,
        constants={
            "half": number(0.5),
            "shown": number(0),
            "hidden": number(-np.inf),
            "m": np.tri(4, 5, dtype=bool),
        },
    ),
    "a part by lengths that are taken off": Pair(
        "float[m,4] x",
        """s = Shape (x) l = Gather (s, zero) k = Sub (l, two) b = Slice (x, zero, k)
           y = Gelu (b)""",
        """s = Shape (x) l = Gather (s, zero) k = Add (l, less) b = Slice (x, zero, k)
           d = Div (b, root) e = Erf (d) o = Add (e, one) p = Mul (b, o) y = Mul (p, half)""",
        opset=20,
        constants={
            "zero": whole(0),
            "two": whole(2),
            "less": whole(-2),
            "root": number(np.sqrt(2)),
            "one": number(1),
            "half": number(0.5),
        },
    ),
    "numbers with more axes than what they scale": Pair(
        "float[3] x",
        "a = Mul (x, c) y = Mul (a, d)",
        "y = Mul (x, e)",
        constants={"c": ramp(1, 1) * 2, "d": ramp(1, 1) * 3, "e'": ramp(1, 1) ** 2 * 6},
    ),
    "BiasGelu": Pair(
        "float[2,4] u",
        """x = Add (u, b) a = Div (x, root) e = Erf (a) o = Add (e, one) p = Mul (x, o)
           y = Mul (p, half)""",
        "y = com.microsoft.BiasGelu (u, b)",
        constants={
            "b": drawn(4),
            "root": number(np.sqrt(2)),
            "one": number(1),
            "half": number(0.5),
        },
    ),
    "FastGelu": Pair(
        "float[2,4] x",
        """c = Pow (x, three) s = Mul (c, k) i = Add (x, s) j = Mul (i, l) t = Tanh (j)
           o = Add (t, one) h = Mul (x, half) y = Mul (h, o)""",
        "y = com.microsoft.FastGelu (x)",
        constants={
            "three": number(3),
            "k": number(0.044715),
            "l": number(np.sqrt(2 / np.pi)),
            "one": number(1),
            "half": number(0.5),
        },
    ),
    "QuickGelu": Pair(
        "float[2,4] x",
        "a = Mul (x, f) s = Sigmoid (a) y = Mul (x, s)",
        "y = com.microsoft.QuickGelu (x)",
        constants={"f": number(1.702)},
    ),
    "HardSwish": Pair(
        "float[2,4] x",
        "s = HardSigmoid <alpha = 0.16666667, beta = 0.5> (x) y = Mul (s, x)",
        "y = HardSwish (x)",
    ),
    "Mish": Pair("float[2,4] x", "a = Softplus (x) b = Tanh (a) y = Mul (x, b)", "y = Mish (x)"),
    "FusedGemm": Pair(
        "float[2,3] x, float[4,3] w, float[4] b",
        "t = Transpose (w) a = MatMul (x, t) c = Add (a, b) y = LeakyRelu <alpha = 0.25> (c)",
        """y = com.microsoft.FusedGemm <transB = 1, activation = "LeakyRelu",
           activation_alpha = 0.25> (x, w, b)""",
    ),
    "FusedMatMul that moves batches": Pair(
        "float[4,2,3] x, float[2,3,5] w",
        "t = Transpose <perm = [1,0,2]> (x) y = MatMul (t, w)",
        "y = com.microsoft.FusedMatMul <transBatchA = 1> (x, w)",
    ),
    "MultiHeadAttention with biases": Pair(
        QKV,
        "q2 = Add (q, i) k2 = Add (k, j) v2 = Add (v, l) "
        + attention(QUERY="q2", KEY="k2", VALUE="v2"),
        "y = com.microsoft.MultiHeadAttention <num_heads = 2> (q, k, v, ijl)",
        constants={
            **HEADS,
            **SCALE,
            "i": drawn(6, seed=1),
            "j": drawn(6, seed=2),
            "l": drawn(6, seed=3),
            "ijl'": np.concatenate([drawn(6, seed=i) for i in (1, 2, 3)]),
        },
    ),
    "MultiHeadAttention with a bias of scores": Pair(
        QKV + ", float[2,2,4,5] m, float[1,2,4,5] n",
        attention("t2 = Add (t, m) w = Add (t2, n)"),
        "b = Add (m, n) y = com.microsoft.MultiHeadAttention <num_heads = 2> (q, k, v, , , b)",
        constants={**HEADS, **SCALE},
    ),
    "MultiHeadAttention with a padding mask": Pair(
        QKV + ", int32[2,5] m",
        attention(
            """g = Greater (m, zero) h = Where (g, shown, hidden) u = Unsqueeze (h, ax)
               w = Add (t, u)"""
        ),
        "y = com.microsoft.MultiHeadAttention <num_heads = 2> (q, k, v, , m)",
        constants={
            **HEADS,
            **SCALE,
            "zero": np.array(0, np.int32),
            "shown": number(0),
            "hidden": number(-10000),
            "ax": whole(1, 2),
        },
    ),
    "Attention of com.microsoft": Pair(
        "float[2,4,6] x",
        "h = MatMul (x, w1) i = Add (h, e) q, k, v = Split <axis = 2> (i, thirds) " + attention(),
        "y = com.microsoft.Attention <num_heads = 2> (x, w1, e)",
        constants={
            **HEADS,
            **SCALE,
            "thirds": whole(6, 6, 6),
            "w1": drawn(6, 18),
            "e": drawn(18, seed=1),
        },
    ),
}


def run(pair: Pair) -> list[Array]:
    """What ONNX Runtime makes of both models, on the same inputs."""
    models = pair.models()
    found = []
    for model in models:
        session = onnxruntime.InferenceSession(
            model.SerializeToString(), providers=["CPUExecutionProvider"]
        )
        found.append(np.asarray(session.run(None, feeds_of(models[0]))[0]))
    return found


@pytest.mark.parametrize("name", PAIRS)
def test_proved_up_to_rounding(name: str, tmp_path: Path) -> None:
    proof = PAIRS[name].proof(tmp_path)
    assert proof.holds, proof.not_known
    assert not proof.conditions


@pytest.mark.parametrize("name", PAIRS)
def test_the_runtime_agrees(name: str) -> None:
    one, other = run(PAIRS[name])
    np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


TWINS: dict[str, tuple[str, str, str]] = {
    "another mean": ("LayerNormalization", "axes = [-1]> (x)", "axes = [-2]> (x)"),
    "a mean square of the sum": (
        "SkipSimplifiedLayerNormalization",
        "n = Mul (x, i)",
        "n = Mul (u, i)",
    ),
    "an exponent of 4": ("FastGelu", "c = Pow (x, three)", "d = Mul (x, x) c = Mul (d, d)"),
    "a guard that shows what it hid": (
        "a guard of a softmax against rows that are masked as a whole",
        "Where (n, zero, p)",
        "Where (n, p, zero)",
    ),
    "no bias under erf": ("BiasGelu", "a = Div (x, root)", "a = Div (u, root)"),
    "a sum taken off twice": (
        "a difference in another association",
        "a = Sub (x, z)",
        "a = Sub (z, x)",
    ),
    "one factor of two": (
        "a factor past a sum and a product",
        "b = Mul (z, f)",
        "b = Identity (z)",
    ),
    "heads of the keys for values": (
        "MultiHeadAttention with a bias of scores",
        "c = Reshape (v, apart)",
        "c = Reshape (k, apart)",
    ),
    "a bias of scores left out": (
        "MultiHeadAttention with a bias of scores",
        "w = Add (t2, n)",
        "w = Add (t2, m)",
    ),
    "a mask that hides what it showed": (
        "MultiHeadAttention with a padding mask",
        "Where (g, shown, hidden)",
        "Where (g, hidden, shown)",
    ),
    "thirds in another order": (
        "Attention of com.microsoft",
        "q, k, v = Split",
        "k, q, v = Split",
    ),
    "another slope": ("FusedGemm", "alpha = 0.25> (c)", "alpha = 0.5> (c)"),
}


@pytest.mark.parametrize("name", TWINS)
def test_a_twin_that_differs_is_not_proved(name: str, tmp_path: Path) -> None:
    known, text, other = TWINS[name]
    pair = PAIRS[known]
    assert text in pair.before
    twin = replace(pair, before=pair.before.replace(text, other))
    assert not twin.proof(tmp_path).holds
    one, two = run(twin)
    assert not np.allclose(one, two, 1e-4, 1e-4)


def _changed(pair: Pair, constants: Mapping[str, Any]) -> Pair:
    return replace(pair, constants={**pair.constants, **constants})


CONSTANTS = {
    "masks added in two steps": {"both'": ramp(3, 4, 4) + np.full((2, 1, 4, 4), -100, np.float32)},
    "factors of channels put together": {"e'": ramp(3, 1) * drawn(4) * np.float32(1.001)},
    "BatchNormalization with the channels last": {"l'": drawn(3, seed=2)},
    "MultiHeadAttention with biases": {"ijl'": drawn(18)},
}


@pytest.mark.parametrize("name", CONSTANTS)
def test_other_constants_are_not_proved(name: str, tmp_path: Path) -> None:
    assert not _changed(PAIRS[name], CONSTANTS[name]).proof(tmp_path).holds


def test_a_large_number_beside_small_ones_hides_no_difference(tmp_path: Path) -> None:
    """A mask of -1e9 in a constant must not make differences of the others look like rounding."""
    mask = np.triu(np.full((8, 8), -1e9, np.float32), 1)
    bias = drawn(8, 8)
    other = bias.copy()
    other[5, 1] += 0.01
    pair = Pair(
        "float[2,8,8] x",
        "y = Add (x, c)",
        "y = Add (x, c)",
        constants={"c": bias + mask, "c'": other + mask},
    )
    assert not pair.proof(tmp_path).holds


@pytest.mark.parametrize("variance", [0.0, -1.0])
def test_a_factor_that_is_no_number_hides_no_other_mean(variance: float, tmp_path: Path) -> None:
    """With a variance of 0 the sign of x less the mean is all that is left of it."""
    channels = {"g": drawn(3, seed=1), "h": drawn(3, seed=2), "v": np.full(3, variance, np.float32)}
    body = "y = BatchNormalization <epsilon = 0.0> (x, g, h, m, v)"
    means = {"m": drawn(3, seed=3), "m'": drawn(3, seed=4)}
    pair = Pair("float[2,3,4] x", body, body, constants={**channels, **means})
    assert not pair.proof(tmp_path).holds
