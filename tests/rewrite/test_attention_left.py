"""The reason why an attention stays spelt out is reported."""

from __future__ import annotations

from dataclasses import replace

import pytest

from relayout.api import inspect, optimize
from relayout.optimizer.pipeline import SpeltOut, local_rules
from relayout.targets.target import ONNX, ORT, Target
from tests.rewrite.rewriting import parse, to_ir
from tests.rewrite.test_attention import GUARDED, REFUSED, SYMBOLIC, Attention

BETWEEN = "more than a scale and a mask is between the product with K and Softmax"
ELSEWHERE = "the result of Softmax does not go into the product with V alone"
EITHER = "from opset 23 on it can be one operator; --opset 23 or --target ort allows it"
HIDDEN = """s = MatMul (q, k) hidden = Constant <value_float = -inf> ()
    scaled = Where (m, s, hidden)"""
GUARDED_MASK = Attention(scores=HIDDEN, weights=GUARDED, mask="bool[2,1,5,7] m")


def reasons(text: str, opset: int, target: Target) -> dict[str, list[str]]:
    watching = SpeltOut(target)
    local_rules(target).run(to_ir(parse(text, opset)), [watching])
    return watching.reasons


REASONS = {
    "scores are an output": BETWEEN,
    "weights are an output": ELSEWHERE,
    "scores are read elsewhere": BETWEEN,
    "softmax over queries": "Softmax runs along another axis than the last",
    "scaled after the mask": BETWEEN,
    "scaled by head": BETWEEN,
    "scaled by a negative number": (
        "V is scaled, or the scores are scaled by a number that is not positive"
    ),
    "hidden by a finite number": BETWEEN,
    "no heads are moved": "no split into heads leads to Q and K and V",
    "double has no kernel of ORT's own": "the operator has no kernel for its type",
}


@pytest.mark.parametrize("case", REASONS)
def test_the_reason_of_every_refusal(case: str) -> None:
    spelling = REFUSED[case]
    opset = 17 if spelling.element == "double" else 23
    assert list(reasons(spelling.text(), opset, ORT)) == [REASONS[case]]


@pytest.mark.parametrize(
    ("spelling", "opset", "target", "reason"),
    [
        (Attention(), 22, ONNX, EITHER),
        (
            replace(Attention(), element="double"),
            22,
            ONNX,
            "from opset 23 on it can be one operator; --opset 23 allows it",
        ),
        (GUARDED_MASK, 17, ONNX, "from opset 23 on it can be one operator; --opset 23 allows it"),
        (
            GUARDED_MASK,
            17,
            ORT,
            "MultiHeadAttention gives NaN for a row that is masked as a whole",
        ),
    ],
)
def test_what_the_opset_or_the_target_lacks(
    spelling: Attention, opset: int, target: Target, reason: str
) -> None:
    assert list(reasons(spelling.text(), opset, target)) == [reason]


def test_the_mask_that_may_widen_the_batch_is_named() -> None:
    widened = SYMBOLIC.replace("float[n,1,1,s] m", "float[b,1,1,s] m")
    (reason,) = reasons(widened, 23, ONNX)
    assert reason == "the mask 'm' is not known to have the batch and length of Q"


def test_operands_without_heads_side_by_side_are_named() -> None:
    """Packed within their heads: no tensor holds the heads of one operand alone."""
    split = """ps = Constant <value_ints = [2,5,3,27]> () p = Reshape (x, ps)
        h = Transpose <perm = [0,2,1,3]> (p) n = Constant <value_ints = [9,9,9]> ()
        q, kn, v = Split <axis = 3> (h, n) k = Transpose <perm = [0,1,3,2]> (kn)"""
    packed = Attention(keys=5, split_heads=split, inputs="float[2,5,81] x")
    assert list(reasons(packed.text(), 23, ONNX)) == ["no split into heads leads to Q and K and V"]


def test_what_is_raised_is_not_mentioned() -> None:
    assert not reasons(Attention().text(), 23, ONNX)
    assert not reasons(Attention().text(), 17, ORT)


def test_a_softmax_beside_constant_factors_is_not_an_attention() -> None:
    gate = """g (float[2,5,9] x) => (float[2,9,5] y)
        <float[9,3] w = {1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8,9},
         float[3,9] v = {1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8,9}> {
        s = MatMul (x, w) p = Softmax <axis = -1> (s) r = MatMul (p, v)
        y = Transpose <perm = [0,2,1]> (r) }"""
    assert not reasons(gate, 17, ONNX)


def test_the_reason_is_reported() -> None:
    model = parse(Attention().text(), 17)
    notice = f"the attention at 'w' stays spelt out: {EITHER}"
    assert notice in inspect(model).notices
    assert notice in optimize(model, verify=False).record().notices
    assert not optimize(model, target="ort", verify=False).record().notices


def test_equal_reasons_are_reported_once() -> None:
    twice = """g (float[2,5,3,4] a, float[2,5,12] u) => (float[2,5,12] y)
        <int64[4] split = {2,5,3,4}, int64[3] merged = {2,5,12}> {
        t = Transpose <perm = [0,2,1,3]> (a) k = Transpose <perm = [0,2,3,1]> (a)
        s = MatMul (t, k) p = Softmax <axis = -1> (s) r = MatMul (p, t)
        r4 = Transpose <perm = [0,2,1,3]> (r) m = Reshape (r4, merged)
        x = Relu (m) x4 = Reshape (x, split) x5 = Reshape (u, split)
        q2 = Transpose <perm = [0,2,1,3]> (x4) k2 = Transpose <perm = [0,2,3,1]> (x5)
        s2 = MatMul (q2, k2) p2 = Softmax <axis = -1> (s2) r2 = MatMul (p2, q2)
        r6 = Transpose <perm = [0,2,1,3]> (r2) y = Reshape (r6, merged) }"""
    notices = optimize(parse(twice, 17), verify=False).record().notices
    assert f"2 attentions stay spelt out, 'p' first: {EITHER}" in notices
