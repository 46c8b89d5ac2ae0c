"""What other tools made of models and got wrong, in as few nodes as show it: none is proved."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from relayout.verify.proof.proof import prove_models
from tests.verify.proof.cases import Array, Pair, ramp, whole

WRONG = {
    # onnxoptimizer 0.4.2 leaves out the first of two Reshapes, though a 0 copies its length.
    "a Reshape before one that copies lengths": Pair(
        "float[3,4,2,2] x",
        "a = Reshape (x, groups) y = Reshape (a, rows)",
        "y = Reshape (x, rows)",
        constants={"groups": whole(3, 2, 2, 2, 2), "rows": whole(0, 0, -1)},
    ),
    # onnxscript 0.7.2 makes a Cast of a CastLike and forgets that it does not saturate.
    "a Cast that saturates": Pair(
        "float[3] x",
        "a = Cast <to = 17, saturate = 0> (x) y = Cast <to = 1> (a)",
        "a = Cast <to = 17> (x) y = Cast <to = 1> (a)",
        opset=19,
        runs=False,
    ),
    # ONNX Runtime 1.31 moves Transposes over a Hardmax that takes the first of equal numbers.
    "the first of equal numbers over several axes": Pair(
        "float[2,3,4] x",
        "a = Transpose <perm = [0,2,1]> (x) b = Hardmax <axis = 1> (a) "
        "y = Transpose <perm = [0,2,1]> (b)",
        "y = Hardmax <axis = 1> (x)",
        opset=12,
        runs=False,
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_not_proved(name: str, tmp_path: Path) -> None:
    assert not WRONG[name].proof(tmp_path).holds


def test_two_reshapes_are_not_the_second_one() -> None:
    one, other = WRONG["a Reshape before one that copies lengths"].results()
    assert one.shape != other.shape


@pytest.mark.parametrize(
    "constant", [np.array([np.inf, 1], np.float16), ramp(2), np.zeros((0, 0), np.float32)]
)
def test_constants_of_any_kind_are_read(constant: Array) -> None:
    """Infinite halves, and none at all."""
    form = "float16" if constant.dtype == np.float16 else "float"
    before = "a = Mul (x, c) y = Identity (a)"
    pair = Pair(f"{form}[1] x", before, "y = Mul (c, x)", constants={"c": constant})
    assert prove_models(*pair.models()).holds


BRANCHES = """
    y = If (test) <
        then_branch = a () => (float u) { u = Relu (v) },
        else_branch = b () => (float w) { w = Neg (v) }>"""


def test_nodes_in_any_order_with_bodies_that_read_later_ones() -> None:
    first, later = "v = Exp (x)", BRANCHES
    pair = Pair("float[3] x, bool test", f"{later} {first}", f"{first} {later}", runs=False)
    assert prove_models(*pair.models()).holds


@pytest.mark.parametrize(("training", "is_proved"), [(False, True), (True, False)])
def test_dropout_is_nothing_unless_in_training(training: bool, is_proved: bool) -> None:
    constants = {"ratio": np.asarray(0.5, np.float32), "training": np.asarray(training)}
    pair = Pair(
        "float[3] x", "y = Dropout (x, ratio, training)", "y = Identity (x)", constants=constants
    )
    assert prove_models(*pair.models()).holds == is_proved
