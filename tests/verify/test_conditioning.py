"""Models are run in other ways to see how much rounding changes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from relayout.verify.conditioning import DRAWS, of_model
from relayout.verify.interface import interface_of
from relayout.verify.numeric import compare
from relayout.verify.runtimes import ONNX_RUNTIME, derived, read
from relayout.verify.wider import widen, widened_feeds
from tests.verify.models import constant, node, save, tensor


def _recurrent(op_type: str, gates: int) -> tuple[Any, tuple[int, ...], list[onnx.TensorProto]]:
    """An operator with lengths of sequences, which are whole numbers between floats."""
    rng = np.random.default_rng(0)
    weights = [
        constant("w", rng.standard_normal((1, gates * 4, 3))),
        constant("r", rng.standard_normal((1, gates * 4, 4))),
        constant("lengths", [5, 3], np.int32),
        constant("h", rng.standard_normal((1, 2, 4))),
    ]
    made = node(op_type, ["x", "w", "r", "", "lengths", "h"], ["y"], hidden_size=4)
    return made, (5, 2, 3), weights


ONES = [
    _recurrent("GRU", 3),
    _recurrent("LSTM", 4),
    _recurrent("RNN", 1),
    (
        node("Col2Im", ["x", "image", "block"], ["y"]),
        (1, 8, 6),
        [constant("image", [3, 4], np.int64), constant("block", [2, 2], np.int64)],
    ),
    (
        node("MaxUnpool", ["x", "places"], ["y"], kernel_shape=[2]),
        (1, 1, 2),
        [constant("places", [[[1, 2]]], np.int64)],
    ),
    (
        node("Resize", ["x", "", "", "sizes"], ["y"], mode="linear"),
        (1, 1, 4),
        [constant("sizes", [1, 1, 7], np.int64)],
    ),
    (node("Det", ["x"], ["y"]), (2, 3, 3), []),
    (node("HardSwish", ["x"], ["y"]), (2, 3), []),
    (node("Hardmax", ["x"], ["y"]), (2, 3), []),
    (node("LpPool", ["x"], ["y"], kernel_shape=[2]), (1, 2, 4), []),
    (node("MeanVarianceNormalization", ["x"], ["y"]), (2, 3, 2, 2), []),
    (node("Mish", ["x"], ["y"]), (2, 3), []),
]


@pytest.mark.parametrize(
    ("one", "shape", "constants"),
    ONES,
    ids=lambda one: one.op_type if hasattr(one, "op_type") else "",
)
def test_what_has_no_wide_kernel_runs_within_wider_models(
    one: Any, shape: tuple[int, ...], constants: list[onnx.TensorProto], tmp_path: Path
) -> None:
    path = tmp_path / "m.onnx"
    save(path, [one], [tensor("x", shape)], [tensor("y", None)], constants, opset=18)
    interface = interface_of(path)
    feeds = {"x": np.random.default_rng(1).standard_normal(shape).astype(np.float32)}
    (known,) = ONNX_RUNTIME.load(path, interface)(feeds)
    (found,) = ONNX_RUNTIME.load(derived(widen(read(path)), path), interface)(widened_feeds(feeds))
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, known, rtol=1e-5, atol=1e-6)


def test_each_draw_of_weights_shows_other_rounding(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    weights = rng.standard_normal((16, 16))
    path = save(
        tmp_path / "m.onnx",
        [node("MatMul", ["x", "w"], ["y"])],
        [tensor("x", (1, 16))],
        [tensor("y", (1, 16))],
        [constant("w", weights)],
    )
    interface = interface_of(path)
    original = ONNX_RUNTIME.load(path, interface)
    feeds = {"x": rng.standard_normal((1, 16)).astype(np.float32)}
    results = [one[0] for one in of_model(original, path, interface).results(feeds)]
    drawn = {one.tobytes() for one in results[-DRAWS:]}
    assert len(drawn) == DRAWS
    for one in results:
        np.testing.assert_allclose(one, original(feeds)[0], rtol=1e-4, atol=1e-5)


def _head(path: Path, order: np.ndarray[Any, Any] | None) -> Path:
    """Rows of Softmax that are sure of an element, of sums in one of two orders."""
    rng = np.random.default_rng(1)
    first, second = rng.standard_normal((256, 256)), rng.standard_normal((256, 15)) / 4
    order = np.arange(256) if order is None else order
    nodes = [
        node("Gather", ["table", "i"], ["e"]),
        node("MatMul", ["e", "first"], ["a"]),
        node("Tanh", ["a"], ["b"]),
        node("MatMul", ["b", "second"], ["c"]),
        node("Softmax", ["c"], ["y"]),
        node("ArgMax", ["y"], ["k"], axis=2),
    ]
    return save(
        path,
        nodes,
        [tensor("i", (2, 64), onnx.TensorProto.INT64)],
        [tensor("y", (2, 64, 15)), tensor("k", (2, 64, 1), onnx.TensorProto.INT64)],
        [
            constant("table", rng.standard_normal((64, 256))[:, order]),
            constant("first", first[order]),
            constant("second", second),
        ],
    )


@pytest.mark.parametrize("seed", range(4))
def test_sums_in_another_order_before_a_softmax_that_is_sure_are_equal(
    tmp_path: Path, seed: int
) -> None:
    order = np.random.default_rng(seed).permutation(256)
    verdict = compare(_head(tmp_path / "a.onnx", None), _head(tmp_path / "b.onnx", order))
    assert verdict.equal, verdict.summary()
    assert not verdict.exact
