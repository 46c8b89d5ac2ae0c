"""Models that nearly compute the same must not be proved to."""

from __future__ import annotations

from collections import Counter

import onnx
import pytest

from benchmarks.near_miss import tried
from relayout.verify.proof.proof import prove_models

HEAD = '<ir_version: 10, opset_import: ["": 21, "own": 1]>\n'
PADDED_ONES = """
g (double[1, 1] x) => (double[3, 3] y) <int64[4] pads = {0, 0, 2, 2}> {
    padded = Pad(x, pads)
    y = Softmax<axis = AXIS>(padded)
}"""
SUM_OF_PADDED = """
g (double[1, 1] x) => (double y) <int64[4] pads = {0, 0, 2, WIDTH}, double fill = {1.5}> {
    padded = Pad(x, pads, fill)
    y = ReduceSum<keepdims = 0>(padded)
}"""
REPEATED = """
g (double[1, 1, 1, 1] x) => (double[1, 1, 1, 1] y)
<int64[4] shape = {1, 3, 1, 1}, int64[1] at = {PLACE}, int64[1] one = {1}, int64 axis = {1}> {
    repeated = Expand(x, shape)
    walked = WALK
    behind = Add(at, one)
    y = Slice(walked, at, behind, one)
}"""
CARRIED = """
g (double[1] x) => (double[2, 2] y)
<int64[1] twice = {2}, int64[2] shape = {2, 2}, int64 rounds = {1}, bool go = {1}> {
    pair = Expand(x, twice)
    four = Tile(pair, twice)
    sums = Loop(rounds, go, four) <body = b (int64 i, bool c, double[4] v) => (bool d, double[4] e)
        <int64 axis = {0}> {
        d = Identity(c)
        e = CumSum(v, axis)
    }>
    square = Reshape(sums, shape)
    y = Transpose<perm = PERM>(square)
}"""
DRAWN = """
g (double[3] x) => (double[3] y) {
    one = RandomUniformLike(x)
    other = RandomUniformLike(x)
    both = Sub(one, OTHER)
    y = Mul(both, x)
}"""
CHOSEN = """
g (double[3] x) => (double[3] y) {
    y = own.chosen<slope = SLOPE>(x)
}
<domain: "own", opset_import: ["": 21]>
chosen<slope>(a) => (y) {
    sum = ReduceSum<keepdims = 0>(a)
    test = Cast<to = 9>(sum)
    y = If(test) <
        then_branch = t () => (double[3] r) { r = LeakyRelu<alpha: float = @slope>(a) },
        else_branch = e () => (double[3] s) { s = Neg(a) }>
}"""
LEFT_OVER = """
g (double[2, 3] x) => (double[2, 3] y) <double[3] scale = {1, 2, 3}> {
    y = LayerNormalization<axis = AXIS>(x, scale)
}"""
PICKED = """
g (double[1] x) => (double y) <int64[1] three = {3}, int64 at = {PLACE}> {
    repeated = Expand(x, three)
    y = Gather(repeated, at)
}"""
WALKS = ("CumSum(repeated, axis)", "Hardmax<axis = 1>(repeated)", "LRN<size = 3>(repeated)")


def _pair(text: str, word: str, one: str, other: str) -> tuple[onnx.ModelProto, onnx.ModelProto]:
    models = [onnx.parser.parse_model(HEAD + text.replace(word, way)) for way in (one, other)]
    return models[0], models[1]


NEAR_MISSES = {
    "unit axes padded alike": _pair(PADDED_ONES, "AXIS", "0", "1"),
    "one of two unit axes padded": _pair(SUM_OF_PADDED, "WIDTH", "0", "2"),
    "axes that a loop carries": _pair(CARRIED, "PERM", "[0, 1]", "[1, 0]"),
    "numbers drawn once or twice": _pair(DRAWN, "OTHER", "one", "other"),
    "an attribute in the branch of a function": _pair(CHOSEN, "SLOPE", "0.25", "0.5"),
    "an element that is not there": _pair(PICKED, "PLACE", "2", "3"),
    "an axis that is not there": _pair(LEFT_OVER, "AXIS", "1", "3"),
} | {
    f"a repeated axis in {walk}": _pair(REPEATED.replace("WALK", walk), "PLACE", "0", "2")
    for walk in WALKS[:1]
} | {
    f"a repeated axis in {walk}": _pair(REPEATED.replace("WALK", walk), "PLACE", "0", "1")
    for walk in WALKS[1:]
}  # fmt: skip


@pytest.mark.parametrize("name", NEAR_MISSES)
def test_near_misses_are_not_proved(name: str) -> None:
    one, other = NEAR_MISSES[name]
    assert prove_models(one, one).identical
    assert not prove_models(one, other).holds


def test_factors_that_differ_by_little_are_not_identical() -> None:
    text = "g (double[3] x) => (double[3] y) <double c = {FACTOR}> { y = Mul(x, c) }"
    near = prove_models(*_pair(text, "FACTOR", "0.1", "0.10000000001"))
    assert near.holds
    assert not near.identical
    assert not prove_models(*_pair(text, "FACTOR", "0.1", "0.101")).holds
    assert not prove_models(*_pair(text, "FACTOR", "0.0", "-0.0")).holds


def test_resizes_of_versions_that_place_numbers_otherwise_differ() -> None:
    text = """<ir_version: 10, opset_import: ["": VERSION]>
    g (float[1, 1, 2, 2] x) => (float[1, 1, 4, 4] y) <float[4] s = {1, 1, 2, 2}, float[1] r = {0}> {
        y = Resize<mode = "linear">(OPERANDS)
    }"""
    old = onnx.parser.parse_model(text.replace("VERSION", "10").replace("OPERANDS", "x, s"))
    new = onnx.parser.parse_model(text.replace("VERSION", "11").replace("OPERANDS", "x, r, s"))
    assert not prove_models(old, new).holds


def test_random_near_misses_by_numbers() -> None:
    counts: Counter[str] = Counter()
    wrong = []
    for seed in range(70):
        tally = tried(seed)
        counts += tally.counts
        wrong += tally.wrong
    assert counts["pairs"] > 250
    assert counts["equal, proved"] > 5 * counts["equal, not proved"] > 0
    assert counts["different, not proved"] > 80
    assert not [line for line in wrong if "WRONG" in line]
