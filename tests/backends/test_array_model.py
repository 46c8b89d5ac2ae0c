"""One call convention, whichever backend runs a model."""

from __future__ import annotations

import os
import pickle
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import relayout
from relayout.backends.registry import BACKENDS
from tests.rewrite.rewriting import parse

MODEL = """
    g (float[N,4] x, float[4] b) => (float[N,2] y, float[N,4] z)
    <float[4,2] w = {1,2,3,4,5,6,7,8}> {
      z = Add(x, b)
      y = MatMul(z, w) }"""

NAMES = [name for name in ("ort", "openvino", "torch") if BACKENDS[name].is_installed]


@pytest.fixture(scope="module", params=NAMES)
def compiled(request: pytest.FixtureRequest) -> Any:
    return relayout.compile(parse(MODEL, 17), backend=request.param, tune=False, verify=False)


def feeds(batch: int) -> tuple[Any, Any]:
    draw = np.random.default_rng(batch)
    return draw.standard_normal((batch, 4), np.float32), draw.standard_normal(4, np.float32)


def check(outputs: Any, x: Any, b: Any) -> None:
    assert list(outputs) == ["y", "z"]
    np.testing.assert_allclose(outputs["z"], x + b, rtol=1e-5)
    weights = np.arange(1, 9, dtype=np.float32).reshape(4, 2)
    np.testing.assert_allclose(outputs["y"], (x + b) @ weights, rtol=1e-4, atol=1e-4)


def test_inputs_in_order_by_name_and_as_a_mapping_in_batches_of_any_length(compiled: Any) -> None:
    for batch in (1, 3, 8):
        x, b = feeds(batch)
        for outputs in (compiled(x, b), compiled(x=x, b=b), compiled({"b": b, "x": x})):
            check(outputs, x, b)


def test_results_stay_when_the_model_is_called_again(compiled: Any) -> None:
    x, b = feeds(2)
    first = compiled(x, b)
    compiled(x + 1, b)
    check(first, x, b)


def test_tensors_in_are_tensors_out(compiled: Any) -> None:
    torch = pytest.importorskip("torch")
    x, b = feeds(2)
    outputs = compiled(torch.from_numpy(x), torch.from_numpy(b))
    assert all(isinstance(each, torch.Tensor) for each in outputs.values())
    check({name: value.numpy() for name, value in outputs.items()}, x, b)


def test_what_the_model_does_not_take_is_named(compiled: Any) -> None:
    x, b = feeds(2)
    with pytest.raises(TypeError, match="no input 'c'"):
        compiled(x, b, c=b)
    with pytest.raises(TypeError, match="'b' is missing"):
        compiled(x)
    with pytest.raises(TypeError, match="'b' has type"):
        compiled(x, b.astype(np.float64))
    with pytest.raises(ValueError, match="'x' has shape"):
        compiled(x[:, :3], b)


def test_several_threads_may_call_one_model(compiled: Any) -> None:
    given = [feeds(batch) for batch in (1, 2, 3, 5) * 8]
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda each: compiled(*each), given))
    for each, outputs in zip(given, results, strict=True):
        check(outputs, *each)


def test_pickling_is_refused_in_words(compiled: Any) -> None:
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(compiled)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_fork_is_refused_in_words_and_ends(compiled: Any) -> None:
    x, b = feeds(1)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            compiled(x, b)
            told = "ran"
        except RuntimeError as error:
            told = str(error)
        except relayout.RelayoutError as error:
            told = str(error)
        os.write(writing, told.encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as line:
        assert "fork" in line.read()
    os.waitpid(child, 0)
