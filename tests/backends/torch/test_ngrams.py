"""N-grams of numbers are counted as the standard says."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest

from benchmarks.judge.running import ORT, run

torch = pytest.importorskip("torch")

import relayout  # noqa: E402 - torch may be missing
from relayout.errors import RelayoutError  # noqa: E402

POOL = [2, 3, 5, 4, 5, 6, 7, 8, 6, 7, 2, 3, 4, 5, 6, 7, 8, 9]
"""Four of one token, four of two, two of three, which share their beginnings."""
STARTS = [0, 4, 12]
COUNT = 10


def _model(shape: list[Any], kind: str = "INT64", **named: Any) -> onnx.ModelProto:
    settings: dict[str, Any] = {
        "mode": "TF",
        "min_gram_length": 1,
        "max_gram_length": 3,
        "max_skip_count": 0,
        "ngram_counts": STARTS,
        "ngram_indexes": list(range(COUNT)),
        "pool_int64s": POOL,
    }
    node = onnx.helper.make_node("TfIdfVectorizer", ["x"], ["y"], **(settings | named))
    given = onnx.helper.make_tensor_value_info("x", getattr(onnx.TensorProto, kind), shape)
    made = onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)
    graph = onnx.helper.make_graph([node], "g", [given], [made])
    opsets = [onnx.helper.make_opsetid("", 17)]
    return onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8)


def _agrees(model: onnx.ModelProto, x: Any) -> None:
    (wanted,) = run(model, {"x": x}, ORT)
    (found,) = relayout.compile(model, tune=False, verify=False)({"x": x}).values()
    assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


@pytest.mark.parametrize("lengths", [(1, 1), (2, 2), (1, 2), (2, 3), (1, 3), (3, 3)], ids=str)
@pytest.mark.parametrize("skips", [0, 1, 4])
@pytest.mark.parametrize("shape", [(40,), (3, 17), (2, 2)], ids=str)
def test_counts(lengths: tuple[int, int], skips: int, shape: tuple[int, ...]) -> None:
    least, most = lengths
    named: dict[str, Any] = {
        "min_gram_length": least,
        "max_gram_length": most,
        "max_skip_count": skips,
    }
    x = np.random.default_rng(sum(shape)).integers(1, 11, shape)
    _agrees(_model(list(shape), **named), x)


@pytest.mark.parametrize("mode", ["IDF", "TFIDF"])
@pytest.mark.parametrize("weights", [None, [0.5 * place for place in range(COUNT)]], ids=str)
def test_weights(mode: str, weights: list[float] | None) -> None:
    named = {} if weights is None else {"weights": weights}
    x = np.random.default_rng(8).integers(1, 11, (3, 30)).astype(np.int32)
    _agrees(_model(["N", "C"], "INT32", mode=mode, max_skip_count=2, **named), x)


def test_columns_may_be_in_any_order_and_shared() -> None:
    x = np.random.default_rng(9).integers(1, 11, (2, 30))
    _agrees(_model([2, 30], ngram_indexes=[4, 7, 0, 1, 7, 2, 3, 12, 5, 6]), x)


@pytest.mark.parametrize(
    ("named", "reason"),
    [
        ({"mode": "TFIDF", "weights": [*map(float, range(COUNT))]}, "weights in another order"),
        ({"pool_int64s": None, "pool_strings": ["a"] * 18}, "n-grams of strings"),
    ],
)
def test_what_is_not_counted_is_refused(named: dict[str, Any], reason: str) -> None:
    model = _model([8], ngram_indexes=[*range(1, COUNT), 0], **named)
    with pytest.raises(RelayoutError, match=reason):
        relayout.compile(model, tune=False, verify=False)
