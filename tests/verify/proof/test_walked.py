"""Loops, scans and operators that walk axes, whatever the order of axes they are given in."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.verify.proof.cases import Pair, ramp, whole

TRIPS = {"n": np.array(3, np.int64), "go": np.array(True)}
LSTM = {"w": ramp(1, 8, 3), "r": ramp(1, 8, 2)}

PAIRS = {
    "a weight that a loop carries as it is": Pair(
        "float[2,3] x, float[3,3] w",
        """y, u = Loop <body = b (int64 i, bool c, float[2,3] s, float[3,3] v)
             => (bool d, float[2,3] e, float[3,3] q)
             { d = Identity (c) a = MatMul (s, v) e = Tanh (a) q = Identity (v) }> (n, go, x, w)""",
        """t = Transpose (w)
           y, u = Loop <body = b (int64 i, bool c, float[2,3] s, float[3,3] v)
             => (bool d, float[2,3] e, float[3,3] q)
             { d = Identity (c) k = Transpose (v) a = MatMul (s, k) e = Tanh (a)
               q = Identity (v) }> (n, go, x, t)""",
        constants=TRIPS,
    ),
    "a state that grows, carried in another order": Pair(
        "float[2,3] x",
        """y = Loop <body = b (int64 i, bool c, float[2,m] s) => (bool d, float[2,k] e)
             { d = Identity (c) a = Relu (s) e = Concat <axis = 1> (a, x) }> (n, go, x)""",
        """y = Loop <body = b (int64 i, bool c, float[2,m] s) => (bool d, float[2,k] e)
             { d = Identity (c) t = Transpose (s) a = Relu (t) u = Transpose (a)
               e = Concat <axis = 1> (u, x) }> (n, go, x)""",
        constants=TRIPS,
    ),
    "Scan along another axis": Pair(
        "float[2,4,3] x, float[2,3] z",
        """u, y = Scan <num_scan_inputs = 1, scan_input_axes = [1], scan_output_axes = [1],
             body = b (float[2,3] s, float[2,3] v) => (float[2,3] e, float[2,3] o)
             { a = Add (s, v) e = Tanh (a) o = Relu (a) }> (z, x)""",
        """t = Transpose <perm = [1,0,2]> (x)
           u, w = Scan <num_scan_inputs = 1,
             body = b (float[2,3] s, float[2,3] v) => (float[2,3] e, float[2,3] o)
             { a = Add (v, s) e = Tanh (a) o = Relu (a) }> (z, t)
           y = Transpose <perm = [1,0,2]> (w)""",
        runs=False,
    ),
    "LSTM with the batch first": Pair(
        "float[5,4,3] x",
        """t = Transpose <perm = [1,0,2]> (x) a = LSTM <hidden_size = 2> (t, w, r)
           y = Transpose <perm = [2,0,1,3]> (a)""",
        "y = LSTM <hidden_size = 2, layout = 1> (x, w, r)",
        constants=LSTM,
        runs=False,
    ),
    "ReverseSequence": Pair(
        "float[2,4,3] x",
        "y = ReverseSequence <batch_axis = 0, time_axis = 1> (x, l)",
        """t = Transpose <perm = [1,0,2]> (x) a = ReverseSequence (t, l)
           y = Transpose <perm = [1,0,2]> (a)""",
        constants={"l": whole(3, 4)},
    ),
    "GatherElements": Pair(
        "float[2,4,3] x",
        "y = GatherElements <axis = 1> (x, i)",
        """t = Transpose <perm = [1,2,0]> (x) a = GatherElements (t, i)
           y = Transpose <perm = [2,0,1]> (a)""",
        constants={
            "i": whole(0, 3, 1, 2, 2, 0).reshape(2, 1, 3),
            "i'": whole(0, 3, 1, 2, 2, 0).reshape(2, 1, 3).transpose(1, 2, 0),
        },
    ),
    "ScatterElements": Pair(
        "float[2,4,3] x, float[2,1,3] u",
        "y = ScatterElements <axis = 1> (x, i, u)",
        """t = Transpose <perm = [1,2,0]> (x) v = Transpose <perm = [1,2,0]> (u)
           a = ScatterElements (t, i, v) y = Transpose <perm = [2,0,1]> (a)""",
        constants={
            "i": whole(0, 3, 1, 2, 2, 0).reshape(2, 1, 3),
            "i'": whole(0, 3, 1, 2, 2, 0).reshape(2, 1, 3).transpose(1, 2, 0),
        },
    ),
    "Trilu of moved batches": Pair(
        "float[2,3,4,4] x",
        "y = Trilu (x, k)",
        """t = Transpose <perm = [1,0,2,3]> (x) a = Trilu (t, k)
           y = Transpose <perm = [1,0,2,3]> (a)""",
        constants={"k": np.array(1, np.int64)},
    ),
    "OneHot along another axis": Pair(
        "int64[2,3] x",
        "y = OneHot <axis = 1> (x, d, v)",
        "a = OneHot (x, d, v) y = Transpose <perm = [0,2,1]> (a)",
        constants={"d": np.array(4, np.int64), "v": np.array([0, 1], np.float32)},
    ),
    "places cut to the smaller of two lengths": Pair(
        "float[2,m,3] x",
        """s = Shape (x) l = Gather (s, one) f = Cast <to = 1> (l) q = Min (f, most)
           e = Cast <to = 7> (q) p = Slice (w, zero, e) y = Add (x, p)""",
        """t = Transpose <perm = [0,2,1]> (x) u = Transpose (w) s = Shape (x) l = Gather (s, one)
           f = Cast <to = 1> (l) q = Min (f, most) e = Cast <to = 7> (q)
           p = Slice (u, zero, e, one) a = Add (t, p) y = Transpose <perm = [0,2,1]> (a)""",
        constants={
            "w": ramp(7, 3),
            "one": whole(1),
            "zero": whole(0),
            "most": np.array([5.0], np.float32),
        },
    ),
}


@pytest.mark.parametrize("name", PAIRS)
def test_proved_identical(name: str, tmp_path: Path) -> None:
    proof = PAIRS[name].proof(tmp_path)
    assert proof.identical, proof.not_known
    assert not proof.conditions


@pytest.mark.parametrize("name", [name for name, pair in PAIRS.items() if pair.runs])
def test_proved_pairs_are_one_function(name: str) -> None:
    one, other = PAIRS[name].results()
    np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)


TWINS = {
    "a weight that a loop turns over": (
        "a weight that a loop carries as it is",
        "k = Transpose (v) a = MatMul (s, k) e = Tanh (a)\n               q = Identity (v)",
        "k = Transpose (v) a = MatMul (s, k) e = Tanh (a)\n               q = Identity (k)",
    ),
    "grown at the other end": (
        "a state that grows, carried in another order",
        "Concat <axis = 1> (u, x)",
        "Concat <axis = 1> (x, u)",
    ),
    "scanned backwards": (
        "Scan along another axis",
        "u, w = Scan <num_scan_inputs = 1,",
        "u, w = Scan <num_scan_inputs = 1, scan_input_directions = [1],",
    ),
    "stacked backwards": (
        "Scan along another axis",
        "u, w = Scan <num_scan_inputs = 1,",
        "u, w = Scan <num_scan_inputs = 1, scan_output_directions = [1],",
    ),
    "reversed along the batch": (
        "ReverseSequence",
        "a = ReverseSequence (t, l)",
        "a = ReverseSequence <batch_axis = 0, time_axis = 1> (t, l4)",
    ),
    "the triangle of moved rows": (
        "Trilu of moved batches",
        "a = Trilu (t, k)",
        """r = Transpose <perm = [0,1,3,2]> (t) b = Trilu (r, k)
           a = Transpose <perm = [0,1,3,2]> (b)""",
    ),
    "one hot along the last axis": (
        "OneHot along another axis",
        "y = Transpose <perm = [0,2,1]> (a)",
        "y = Reshape (a, form)",
    ),
    "the later places": (
        "places cut to the smaller of two lengths",
        "p = Slice (u, zero, e, one)",
        "g = Sub (zero, e) h = Slice (u, g, end, one) p = Identity (h)",
    ),
}


@pytest.mark.parametrize("name", TWINS)
def test_a_twin_that_differs_is_not_identical(name: str, tmp_path: Path) -> None:
    known, text, other = TWINS[name]
    pair = PAIRS[known]
    assert text in pair.after
    constants = {
        **pair.constants,
        "l4": whole(1, 2, 1, 2),
        "end": whole(2**31 - 1),
        "form": whole(2, 4, 3),
    }
    twin = replace(pair, after=pair.after.replace(text, other), constants=constants)
    assert not twin.proof(tmp_path).identical
