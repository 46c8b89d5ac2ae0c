"""Operators of one runtime and the standard's, or with axes moved: one function, proved to be."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.verify.proof.cases import Array, Pair, ramp, whole
from tests.verify.proof.test_written_out import run


def _bytes(*shape: int) -> Array:
    return np.random.default_rng(int(np.prod(shape))).integers(0, 255, shape).astype(np.uint8)


STEPS: dict[str, Array] = {
    "s": np.array(0.02, np.float32),
    "z": np.array(100, np.uint8),
    "t": np.array(0.5, np.float32),
    "u": np.array(7, np.uint8),
}
QUANTISED = "q = QuantizeLinear (x, s, z)"
LAST = "q = QuantizeLinear (x, s, z) a = Transpose <perm = [0,3,1,2]> (q)"
MOVED = "r = Transpose <perm = [0,2,3,1]> (b) y = DequantizeLinear (r, t, u)"
WEIGHT: dict[str, Array] = {
    "w": _bytes(4, 3, 2, 2),
    "v": np.linspace(0.01, 0.04, 4, dtype=np.float32),
}
EACH: dict[str, Array] = {
    **STEPS,
    **WEIGHT,
    "p": np.full(4, 3, np.uint8),
    "bias": np.arange(4, dtype=np.int32),
}
WINDOW = "pads = [1, 0, 0, 1], strides = [1, 2]"

PAIRS = {
    "a quantised convolution with the channels last": Pair(
        "float[2,5,6,3] x",
        f"{LAST} b = QLinearConv <{WINDOW}> (a, s, z, w, v, p, t, u, bias) {MOVED}",
        f"""{QUANTISED} b = com.microsoft.QLinearConv <channels_last = 1, {WINDOW}>
            (q, s, z, w, v, p, t, u, bias) y = DequantizeLinear (b, t, u)""",
        constants=EACH,
    ),
    "a quantised mean of windows with the channels last": Pair(
        "float[2,5,6,3] x",
        f"""{LAST} b = com.microsoft.QLinearAveragePool <kernel_shape = [2, 2], {WINDOW}>
            (a, s, z, t, u) {MOVED}""",
        f"""{QUANTISED} b = com.microsoft.QLinearAveragePool <kernel_shape = [2, 2],
            channels_last = 1, {WINDOW}> (q, s, z, t, u) y = DequantizeLinear (b, t, u)""",
        constants=STEPS,
    ),
    "a quantised mean of all places with the channels last": Pair(
        "float[2,5,6,3] x",
        f"{LAST} b = com.microsoft.QLinearGlobalAveragePool (a, s, z, t, u) {MOVED}",
        f"""{QUANTISED} b = com.microsoft.QLinearGlobalAveragePool <channels_last = 1>
            (q, s, z, t, u) y = DequantizeLinear (b, t, u)""",
        constants=STEPS,
    ),
    "the largest of bytes with the channels last": Pair(
        "float[2,5,6,3] x",
        f"{LAST} b = MaxPool <kernel_shape = [2, 2], {WINDOW}> (a) {MOVED}",
        f"""{QUANTISED} b = com.microsoft.NhwcMaxPool <kernel_shape = [2, 2], {WINDOW}> (q)
            y = DequantizeLinear (b, t, u)""",
        constants=STEPS,
    ),
    "a quantised Gemm of transposed operands": Pair(
        "float[3,4] x",
        f"""{QUANTISED} b = com.microsoft.QGemm (q, s, z, w, v, p, bias, t, u)
            y = DequantizeLinear (b, t, u)""",
        f"""{QUANTISED} a = Transpose (q) b = com.microsoft.QGemm <transA = 1, transB = 1>
            (a, s, z, w, v, p, bias, t, u) y = DequantizeLinear (b, t, u)""",
        constants={**EACH, "w": _bytes(4, 4), "w'": np.ascontiguousarray(_bytes(4, 4).T)},
    ),
    "a quantised product in batches that are broadcast": Pair(
        "float[2,3,4,5] x",
        f"""{QUANTISED} b = QLinearMatMul (q, s, z, w, s, z, t, u)
            y = DequantizeLinear (b, t, u)""",
        f"""{QUANTISED} a = Transpose <perm = [1,0,2,3]> (q) e = Unsqueeze (w, one)
            c = QLinearMatMul (a, s, z, e, s, z, t, u) b = Transpose <perm = [1,0,2,3]> (c)
            y = DequantizeLinear (b, t, u)""",
        constants={**STEPS, "w": _bytes(3, 5, 4), "one": whole(1)},
    ),
    "sums of bytes with axes moved": Pair(
        "float[2,3,4] x, float[3,4] o",
        f"""{QUANTISED} p = QuantizeLinear (o, s, z)
            b = com.microsoft.QLinearAdd (q, s, z, p, s, z, t, u) y = DequantizeLinear (b, t, u)""",
        f"""{QUANTISED} p = QuantizeLinear (o, s, z) c = Transpose <perm = [2,0,1]> (q)
            d = Transpose (p) e = Unsqueeze (d, one)
            a = com.microsoft.QLinearAdd (c, s, z, e, s, z, t, u)
            b = Transpose <perm = [1,2,0]> (a) y = DequantizeLinear (b, t, u)""",
        constants={**STEPS, "one": whole(1)},
    ),
    "a convolution of bytes without its bias of zero points": Pair(
        "float[2,3,5,6] x",
        f"{QUANTISED} a = ConvInteger <{WINDOW}> (q, w, z, z) y = Cast <to = 1> (a)",
        f"""{QUANTISED} m = Transpose (q) n = Transpose (m)
            a = ConvInteger <kernel_shape = [2, 2], {WINDOW}> (n, w, z, z)
            y = Cast <to = 1> (a)""",
        constants=EACH,
    ),
    "scales of channels in the runtime's own domain": Pair(
        "float[2,3,4] x",
        """q = com.microsoft.QuantizeLinear <axis = 1> (x, each, zeros)
           y = com.microsoft.DequantizeLinear <axis = 1> (q, each, zeros)""",
        """a = Transpose <perm = [1,0,2]> (x)
           q = com.microsoft.QuantizeLinear <axis = 0> (a, each, zeros)
           b = com.microsoft.DequantizeLinear <axis = 0> (q, each, zeros)
           y = Transpose <perm = [1,0,2]> (b)""",
        constants={"each": np.array([0.5, 1, 2], np.float32), "zeros": np.full(3, 90, np.uint8)},
    ),
    "a fused convolution": Pair(
        "float[1,4,5,6] x, float[1,4,5,3] o",
        f"c = Conv <group = 2, {WINDOW}> (x, w, b) a = Add (c, o) y = Relu (a)",
        f"""y = com.microsoft.FusedConv <group = 2, activation = "Relu", {WINDOW}> (x, w, b, o)""",
        constants={"w": ramp(4, 2, 2, 2), "b": ramp(4)},
    ),
    "a fused product of transposed operands": Pair(
        "float[2,4,3] x, float[2,5,4] o",
        "a = Transpose <perm = [0,2,1]> (x) b = Transpose <perm = [0,2,1]> (o) y = MatMul (a, b)",
        "y = com.microsoft.FusedMatMul <transA = 1, transB = 1> (x, o)",
    ),
    "a fused product of moved batches with a factor": Pair(
        "float[4,2,3] x, float[3,2,5] o",
        """a = Transpose <perm = [1,0,2]> (x) b = Transpose <perm = [1,0,2]> (o)
           c = MatMul (a, b) y = Mul (c, half)""",
        """y = com.microsoft.FusedMatMul <transBatchA = 1, transBatchB = 1, alpha = 0.5> (x, o)""",
        constants={"half": np.array(0.5, np.float32)},
    ),
}


@pytest.mark.parametrize("name", PAIRS)
def test_proved_identical(name: str, tmp_path: Path) -> None:
    proof = PAIRS[name].proof(tmp_path)
    assert proof.identical, proof.not_known
    assert not proof.conditions


@pytest.mark.parametrize("name", PAIRS)
def test_the_runtime_agrees(name: str) -> None:
    one, other = run(PAIRS[name])
    np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)
