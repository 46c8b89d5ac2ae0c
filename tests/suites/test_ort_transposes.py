"""Graphs like those of ONNX Runtime's own tests: no more Transposes than it leaves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest

import relayout
from tests.suites.ort_transposes import BETWEEN, Between

CASES = [
    pytest.param(between, opset, id=f"{between.name}-{opset}")
    for between in BETWEEN
    for opset in between.opsets
]


def _options(level: str) -> ort.SessionOptions:
    options = ort.SessionOptions()
    options.graph_optimization_level = getattr(ort.GraphOptimizationLevel, level)
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    return options


def _results(model: onnx.ModelProto, feeds: dict[str, Any]) -> list[Any]:
    session = ort.InferenceSession(model.SerializeToString(), _options("ORT_DISABLE_ALL"))
    return list(session.run(None, feeds))


def _left_by_runtime(model: onnx.ModelProto, folder: Path) -> int:
    options = _options("ORT_ENABLE_EXTENDED")
    options.optimized_model_filepath = str(folder / "saved.onnx")
    ort.InferenceSession(model.SerializeToString(), options)
    return _transposes(onnx.load(folder / "saved.onnx"))


def _transposes(model: onnx.ModelProto) -> int:
    return sum(node.op_type == "Transpose" for node in model.graph.node)


@pytest.mark.parametrize(("between", "opset"), CASES)
def test_no_more_is_left_than_by_the_runtime(between: Between, opset: int, tmp_path: Path) -> None:
    model, feeds = between.model(opset), between.feeds()
    found = relayout.optimize(model, minimize="count", verify=False).model
    assert _transposes(found) <= _left_by_runtime(model, tmp_path)
    for one, other in zip(_results(model, feeds), _results(found, feeds), strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-5, atol=1e-5)
