"""Runs a model before and after in both runtimes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
from onnx.reference import ReferenceEvaluator

from tests.graph.makers import model, value

LENGTH = 2
"""What a symbolic dimension is given."""


def small(nodes: Sequence[onnx.NodeProto], **more: Any) -> onnx.ModelProto:
    """A model from x to y, both of shape [2, 3]."""
    return model(nodes, **{"outputs": [value("y", [2, 3])], **more})


def assert_runs_alike(given: onnx.ModelProto, result: onnx.ModelProto) -> None:
    """Valid, with equal bytes in the reference evaluator and in ONNX Runtime."""
    onnx.checker.check_model(result, full_check=True)
    feeds = _feeds(given)
    for run in (_reference, _runtime):
        with np.errstate(all="ignore"):
            before, after = run(given, feeds), run(result, feeds)
        for wanted, found in zip(before, after, strict=True):
            assert np.asarray(wanted).tobytes() == np.asarray(found).tobytes()


def _reference(model: onnx.ModelProto, feeds: dict[str, Any]) -> list[Any]:
    return list(ReferenceEvaluator(model).run(None, feeds))


def _runtime(model: onnx.ModelProto, feeds: dict[str, Any]) -> list[Any]:
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return list(session.run(None, feeds))


def _feeds(model: onnx.ModelProto) -> dict[str, Any]:
    chance = np.random.default_rng(0)
    given = {tensor.name for tensor in model.graph.initializer}
    feeds = {}
    for declared in model.graph.input:
        if declared.name in given:
            continue
        kind = declared.type.tensor_type
        shape = [dim.dim_value or LENGTH for dim in kind.shape.dim]
        dtype = onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type)
        feeds[declared.name] = np.asarray(chance.normal(size=shape) * 2).astype(dtype)
    return feeds
