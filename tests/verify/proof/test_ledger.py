"""Proofs up to rounding, and under conditions: both are said."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper, parser

from relayout.verify.proof.proof import DEFAULTS_KEPT, prove, prove_models
from relayout.verify.proof.verdict import ModelProof
from tests.verify.proof.cases import Array, Pair, ramp

ATTENTION = "float[1,2,4,4] q, float[1,2,5,4] k, float[1,2,5,3] v"
WRITTEN_OUT = """
    t = Transpose <perm = [0,1,3,2]> (k) a = MatMul (q, t) b = Mul (a, half)
    p = Softmax <axis = -1> (b) y = MatMul (p, v)"""

PAIRS = {
    "attentions written out": Pair(
        ATTENTION,
        WRITTEN_OUT,
        "y = Attention (q, k, v)",
        opset=23,
        constants={"half": np.array(0.5, np.float32)},
    ),
    "factors moved past products": Pair(
        "float[2,3] x, float[3,4] z",
        "a = Mul (x, f) y = MatMul (a, z)",
        "a = MatMul (x, z) y = Mul (a, f)",
        constants={"f": np.array(0.3, np.float32)},
    ),
    "quotients as products": Pair(
        "float[2,3] x",
        "y = Div (x, f)",
        "y = Mul (x, f)",
        constants={"f": np.array(3, np.float32), "f'": np.array(1 / 3, np.float32)},
    ),
    "constants rounded otherwise": Pair(
        "float[2,3] x",
        "y = MatMul (x, w)",
        "y = MatMul (x, w)",
        constants={"w": ramp(3, 4), "w'": np.nextafter(ramp(3, 4), np.float32(9))},
    ),
    "factors rounded otherwise": Pair(
        "float[3] x",
        "y = Mul (x, f)",
        "y = Mul (x, f)",
        constants={
            "f": np.array(0.1, np.float32),
            "f'": np.nextafter(np.array(0.1, np.float32), np.float32(1)),
        },
    ),
}


@pytest.mark.parametrize("step", PAIRS)
def test_a_step_that_changes_rounding_is_told(step: str, tmp_path: Path) -> None:
    proof = PAIRS[step].proof(tmp_path)
    assert proof.holds
    assert not proof.identical
    assert step in proof.ledger.steps
    assert step in proof.summary()


@pytest.mark.parametrize("step", PAIRS)
def test_pairs_are_one_function_up_to_rounding(step: str) -> None:
    one, other = PAIRS[step].results()
    np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("seed", range(12))
def test_a_constant_in_another_order_may_be_rounded_otherwise(seed: int, kind: type) -> None:
    """Whatever its axes are, as long as no number differs by more than rounding."""
    random = np.random.default_rng(seed)
    held: Array = random.normal(0, 1, random.choice([2, 3], 3)).astype(kind)
    perm = random.permutation(3)
    stored = held.transpose(perm).copy()
    rounded = np.nextafter(stored, np.array(9, kind)) if seed % 3 else stored
    other = stored.copy()
    other.flat[random.integers(stored.size)] += np.array(0.03, kind)
    assert _moved_sum(held, rounded, perm).holds
    assert _moved_sum(held, rounded, perm).identical == (seed % 3 == 0)
    assert not _moved_sum(held, other, perm).holds


def _moved_sum(held: Array, stored: Array, perm: Array) -> ModelProof:
    """Of x plus what is held, and of x in another order plus what is stored."""
    before, after = "y = Add (x, c)", "t = Transpose <P> (x) a = Add (t, c) y = Transpose <Q> (a)"
    models = []
    for body, array in ((before, held), (after, stored)):
        kind = {2: "float16", 4: "float", 8: "double"}[array.itemsize]
        head = '<ir_version: 9, opset_import: ["": 18]>'
        text = body.replace("P", f"perm = {perm.tolist()}")
        text = text.replace("Q", f"perm = {np.argsort(perm).tolist()}")
        shape = ",".join(map(str, held.shape))
        model = parser.parse_model(f"{head} g ({kind}[{shape}] x) => ({kind} y) {{ {text} }}")
        model.graph.initializer.append(numpy_helper.from_array(array, "c"))
        models.append(model)
    return prove_models(*models)


OTHERS = {
    "another scale": Pair(
        ATTENTION,
        WRITTEN_OUT,
        "y = Attention <scale = 0.25> (q, k, v)",
        opset=23,
        constants={"half": np.array(0.5, np.float32)},
    ),
    "keys and values swapped": Pair(
        "float[1,2,4,4] q, float[1,2,4,4] k, float[1,2,4,4] v",
        WRITTEN_OUT,
        "y = Attention (q, v, k)",
        opset=23,
        constants={"half": np.array(0.5, np.float32)},
    ),
    "a window": Pair(
        ATTENTION,
        WRITTEN_OUT,
        "y = Attention <left_window_size = 0> (q, k, v)",
        opset=25,
        constants={"half": np.array(0.5, np.float32)},
    ),
    "a mask that is not broadcast along the keys": Pair(
        ATTENTION + ", float[4,1] m",
        WRITTEN_OUT.replace("(b)", "(c)").replace("p =", "c = Add (b, m) p ="),
        "y = Attention (q, k, v, m)",
        opset=23,
        constants={"half": np.array(0.5, np.float32)},
    ),
    "a constant that differs by more": Pair(
        "float[2,3] x",
        "y = MatMul (x, w)",
        "y = MatMul (x, w)",
        constants={"w": ramp(3, 4), "w'": ramp(3, 4) + np.float32(1e-3)},
    ),
    "a factor past a sum": Pair(
        "float[2,3] x, float[2,3] z",
        "a = Mul (x, f) y = Add (a, z)",
        "a = Add (x, z) y = Mul (a, f)",
        constants={"f": np.array(0.3, np.float32)},
    ),
}


@pytest.mark.parametrize("name", OTHERS)
def test_not_proved_up_to_rounding_either(name: str, tmp_path: Path) -> None:
    assert not OTHERS[name].proof(tmp_path).holds
    one, other = OTHERS[name].results()
    assert not np.allclose(one, other, 1e-5, 1e-5)


def _saved(path: Path, inputs: str, body: str) -> Path:
    head = '<ir_version: 9, opset_import: ["": 18]>'
    held = "<float[3] w = {1.0, 2.0, 3.0}>"
    onnx.save(parser.parse_model(f"{head} g ({inputs}) => (float y) {held} {{ {body} }}"), path)
    return path


def test_outputs_are_proved_one_by_one() -> None:
    text = """<ir_version: 9, opset_import: ["": 18]>
        g (float[3] x) => (float[3] y, float[3] z, float[3] w) {
            y = Relu (x) z = OTHER (x) w = Neg (x) }"""
    models = [parser.parse_model(text.replace("OTHER", name)) for name in ("Exp", "Log")]
    proof = prove_models(*models)
    assert [output.name for output in proof.outputs if output.proved] == ["y", "w"]
    assert proof.summary() == "not proved for 1 of 3 outputs"


def test_a_default_that_became_a_constant_is_a_condition(tmp_path: Path) -> None:
    body = "y = Add (x, w)"
    before = _saved(tmp_path / "before.onnx", "float[3] x, float[3] w", body)
    after = _saved(tmp_path / "after.onnx", "float[3] x", body)
    proof = prove(before, after)
    assert proof.holds
    assert proof.conditions == (DEFAULTS_KEPT,)
    assert DEFAULTS_KEPT in proof.summary()


def test_a_default_that_stays_one_needs_no_condition(tmp_path: Path) -> None:
    before = _saved(tmp_path / "before.onnx", "float[3] x, float[3] w", "y = Add (x, w)")
    after = _saved(tmp_path / "after.onnx", "float[3] x, float[3] w", "y = Add (w, x)")
    proof = prove(before, after)
    assert proof.identical
    assert proof.conditions == ()


def test_open_lengths_taken_to_be_equal_are_a_condition(tmp_path: Path) -> None:
    pair = Pair(
        "float[n,3] x, float[m,3] z",
        "y = Add (x, z)",
        """t = Transpose (x) u = Transpose (z) a = Reshape (t, flat) b = Reshape (u, flat)
           c = Add (a, b) s = Shape (t) d = Reshape (c, s) y = Transpose (d)""",
        constants={"flat": np.array([-1], np.int64)},
    )
    proof = pair.proof(tmp_path)
    assert proof.holds
    assert proof.conditions == ("n = m",)
