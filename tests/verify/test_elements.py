"""Each element is judged by its own scale, and by what rounding does to those that are like it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from relayout.verify.difference import STRICT, Tolerance, difference, widened
from relayout.verify.numeric import compare
from relayout.verify.pools import Pools
from relayout.verify.verdict import NumericOptions
from tests.verify.models import constant, node, one_node, save, tensor

SHARP = Tolerance(STRICT)
RNG = np.random.default_rng(0)


def masked(shape: tuple[int, ...], kind: str) -> np.ndarray:
    """Ordinary numbers beside some that are far larger."""
    values = RNG.standard_normal(shape).astype(np.float32)
    if kind == "one":
        values.flat[0] = -1e9
    elif kind == "row":
        values[0] = -1e9
    elif kind == "last":
        values[..., -1] = np.finfo(np.float32).min
    else:
        values[np.triu(np.ones(shape, bool), 1)] = -1e9
    return values


@pytest.mark.parametrize("kind", ["one", "row", "last", "triangle"])
@pytest.mark.parametrize("shape", [(6, 6), (40, 40)])
def test_large_values_hide_nothing_beside_them(kind: str, shape: tuple[int, ...]) -> None:
    before = masked(shape, kind)
    after = before.copy()
    index = shape[0] - 1, 1
    after[index] += 1e-3
    found = difference(before, after, SHARP)
    assert not found.excused
    assert found.index == index


def test_a_channel_that_is_larger_hides_nothing_in_others() -> None:
    before = RNG.standard_normal((2, 3, 8, 8)).astype(np.float32)
    before[:, 1] *= 100
    after = before.copy()
    after[0, 2, 3, 3] += 1e-4
    assert not difference(before, after, SHARP).excused
    after = before.copy()
    after[0, 1, 3, 3] += 1e-4
    assert difference(before, after, SHARP).excused


def test_small_sums_of_large_terms_are_like_their_neighbours() -> None:
    before = RNG.standard_normal((64, 64)).astype(np.float32)
    before[3, 3] = 1e-5
    after = before + np.float32(3e-7)
    assert difference(before, after, SHARP).excused


def test_zeros_have_the_scale_of_what_is_around_them() -> None:
    before = np.zeros((4, 32), np.float32)
    before[2] = 5.0
    scale = Pools.of(before).scale(before)
    assert scale.min() == 5.0
    assert Pools.of(np.zeros(3)).scale(np.zeros(3)).tolist() == [1.0, 1.0, 1.0]


def test_the_tail_of_an_exponential_is_not_judged_by_itself() -> None:
    before = np.array([[1.0, 2.5e-32], [0.3, 0.7]], np.float32)
    after = before.copy()
    after[0, 1] *= 1.001
    assert difference(before, after, SHARP).excused
    assert not difference(before[:1, 1:], after[:1, 1:], SHARP).excused, "nothing larger beside it"


def test_noise_excuses_what_is_like_it() -> None:
    before = RNG.standard_normal((8, 64)).astype(np.float32)
    noisy, after = before.copy(), before.copy()
    noisy[2] *= np.float32(1 + 1e-4)
    after[2] *= np.float32(1 - 2e-4)
    noise = widened(None, before, noisy)
    assert not difference(before, after, SHARP).excused
    assert difference(before, after, SHARP, noise).excused
    after[3] *= np.float32(1 - 2e-4)
    found = difference(before, after, SHARP, noise)
    assert not found.excused, "only the noise of its own row counts"
    assert found.index[0] == 3


def distances(path: Path, *, halves: bool, wrong: float = 0.0) -> Path:
    """Differences of sums, of which those on the diagonal are zero but for rounding."""
    squares = node("Mul", ["x", "x"], ["q"])
    parts = [node("ReduceSum", ["q", "last"], ["r"], keepdims=1)]
    if halves:
        parts = [
            node("Split", ["q"], ["a", "b"], axis=1),
            node("ReduceSum", ["b", "last"], ["c"], keepdims=1),
            node("ReduceSum", ["a", "last"], ["d"], keepdims=1),
            node("Add", ["c", "d"], ["r"]),
        ]
    nodes = [
        squares,
        *parts,
        node("Transpose", ["x"], ["t"], perm=[1, 0]),
        node("MatMul", ["x", "t"], ["p"]),
        node("Sub", ["r", "p"], ["e"]),
        node("Add", ["e", "off"], ["y"]),
    ]
    off = np.eye(20) * wrong
    constants = [constant("last", [1], np.int64), constant("off", off)]
    return save(path, nodes, [tensor("x", (20, 64))], [tensor("y", (20, 20))], constants)


def test_what_is_left_of_a_difference_may_be_all_rounding(tmp_path: Path) -> None:
    before = distances(tmp_path / "a.onnx", halves=False)
    assert compare(before, distances(tmp_path / "b.onnx", halves=True)).equal
    wrong = distances(tmp_path / "c.onnx", halves=True, wrong=0.01)
    assert compare(before, wrong).status == "differs"


def test_a_change_that_is_no_rounding_excuses_nothing() -> None:
    before = RNG.standard_normal((8, 64)).astype(np.float32)
    flipped, after = before.copy(), before.copy()
    flipped[2, 5] += 1.0
    after[2, 6] += 0.01
    assert not difference(before, after, SHARP, widened(None, before, flipped)).excused


def amplifier(path: Path, gain: float, *, halves: bool, wrong: float = 0.0) -> Path:
    """A sum of products whose rounding is amplified by a difference of large numbers."""
    weight = np.random.default_rng(1).standard_normal((64, 8)).astype(np.float32)
    constants = [constant("w", weight), constant("big", gain), constant("off", wrong)]
    if halves:
        constants += [constant("w1", weight[:32]), constant("w2", weight[32:])]
        products = [
            node("Split", ["x"], ["a", "b"], axis=1),
            node("MatMul", ["a", "w1"], ["p"]),
            node("MatMul", ["b", "w2"], ["q"]),
            node("Add", ["q", "p"], ["m"]),
        ]
    else:
        products = [node("MatMul", ["x", "w"], ["m"])]
    tail = [
        node("Add", ["m", "big"], ["n"]),
        node("Sub", ["n", "big"], ["o"]),
        node("Add", ["o", "off"], ["y"]),
    ]
    return save(
        path, [*products, *tail], [tensor("x", (32, 64))], [tensor("y", (32, 8))], constants
    )


@pytest.mark.parametrize("gain", [100.0, 3000.0, 20000.0])
def test_a_model_that_amplifies_rounding_is_judged_by_itself(tmp_path: Path, gain: float) -> None:
    before = amplifier(tmp_path / "a.onnx", gain, halves=False)
    verdict = compare(before, amplifier(tmp_path / "b.onnx", gain, halves=True))
    assert verdict.equal
    assert not verdict.exact
    after = amplifier(tmp_path / "c.onnx", gain, halves=True, wrong=gain * 1e-5)
    assert compare(before, after).status == "differs"


def test_the_strict_tolerance_finds_what_the_usual_one_does_not(tmp_path: Path) -> None:
    def normalised(path: Path, epsilon: float) -> Path:
        made = node("LayerNormalization", ["x", "s"], ["y"], epsilon=epsilon)
        scale = constant("s", np.ones(16))
        return save(path, [made], [tensor("x", (4, 16))], [tensor("y", (4, 16))], [scale])

    before = normalised(tmp_path / "a.onnx", 1e-5)
    assert compare(before, normalised(tmp_path / "b.onnx", 2e-5)).status == "differs"


def test_nothing_compared_is_not_equal(tmp_path: Path) -> None:
    path = one_node(tmp_path / "a.onnx", "Relu", ("N", 3))
    verdict = compare(path, path, NumericOptions(dims={"N": 0}))
    assert verdict.status == "unknown"
    assert verdict.reason.startswith("nothing was compared")


def test_an_output_without_elements_is_reported(tmp_path: Path) -> None:
    nodes = [node("Relu", ["x"], ["y"]), node("Slice", ["x", "zero", "zero"], ["z"])]
    outputs = [tensor("y", (2, 3)), tensor("z", None)]
    zero = [constant("zero", [0], np.int64)]
    path = save(tmp_path / "a.onnx", nodes, [tensor("x", (2, 3))], outputs, zero)
    verdict = compare(path, path)
    assert verdict.equal
    assert verdict.empty == ("z",)
    assert "1 without elements" in verdict.summary()


@pytest.mark.parametrize(("before", "after"), [((0,), (0, 2, 60)), ((0, 0, 5), (0, 2, 5))])
def test_what_no_rounds_gave_has_the_lengths_that_are_known(
    before: tuple[int, ...], after: tuple[int, ...]
) -> None:
    assert difference(np.zeros(before), np.zeros(after)).excused
    assert difference(np.zeros(after), np.zeros(before)).excused
    assert not difference(np.zeros((1, *before[1:])), np.zeros(after)).alike


def test_other_known_lengths_of_no_rounds_are_another_shape() -> None:
    assert not difference(np.zeros((0, 3, 5)), np.zeros((0, 5, 3))).alike
    assert not difference(np.zeros((0, 3)), np.zeros((0, 3, 1))).alike
