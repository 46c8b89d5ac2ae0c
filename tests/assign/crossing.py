"""Models with bodies after the whole pipeline, with every check that must hold."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx.reference import ReferenceEvaluator

from relayout.api import check_certificate, optimize
from relayout.ops.measure import Objective
from tests.assign.layouting import laid_out
from tests.objectives import COUNTED
from tests.rewrite.rewriting import data_for, parse

OUT, BACK = "Transpose<perm=[0,3,1,2]>", "Transpose<perm=[0,2,3,1]>"
NHWC, NCHW = "float[2,5,7,3]", "float[2,3,5,7]"

by_each_objective = pytest.mark.parametrize("objective", COUNTED, ids=lambda o: str(o.value))


def assert_left(
    text: str, outside: int, inside: int = 0, objective: Objective = Objective.BYTES
) -> onnx.ModelProto:
    """So many Transposes are left around and in the bodies, and the numbers are the same."""
    given = parse(text)
    result, left = laid_out(text, objective)
    for feeds in _all_feeds(given):
        expected = ReferenceEvaluator(given).run(None, feeds)
        _assert_equal(ReferenceEvaluator(result).run(None, feeds), expected)
    again, _ = laid_out(text, objective)
    assert again == result
    _assert_left(result, left.transposes, outside, inside)
    _assert_right(given, result, objective)
    return result


def assert_left_in_runtime(
    text: str, outside: int, objective: Objective = Objective.BYTES
) -> onnx.ModelProto:
    """The same for what the reference evaluator cannot run, or runs wrongly."""
    given = parse(text)
    found = optimize(given, minimize=objective.value, verify=False)
    result = found.model
    onnx.checker.check_model(result, full_check=True)
    _assert_left(result, found.after.transposes, outside, inside=0)
    _assert_right(given, result, objective)
    assert not optimize(result, minimize=objective.value, verify=False).changed
    return result


def _assert_left(result: onnx.ModelProto, left: int, outside: int, inside: int) -> None:
    top = sum(node.op_type == "Transpose" for node in result.graph.node)
    assert (top, left - top) == (outside, inside), onnx.printer.to_text(result)


def _assert_right(given: onnx.ModelProto, result: onnx.ModelProto, objective: Objective) -> None:
    for feeds in _all_feeds(given):
        _assert_equal(_in_runtime(result, feeds), _in_runtime(given, feeds))
    document = optimize(given, minimize=objective.value, verify=False).certificate()
    assert not check_certificate(document, given)


def _all_feeds(model: onnx.ModelProto) -> list[dict[str, Any]]:
    """Both conditions, and loops that run never, once and several times."""
    choices = {"c": [np.asarray(True), np.asarray(False)], "n": [np.asarray(i) for i in (0, 1, 3)]}
    names = [value.name for value in model.graph.input]
    feeds = {value.name: data_for(value) for value in model.graph.input}
    chosen = [name for name in names if name in choices]
    return [
        {**feeds, **dict(zip(chosen, values, strict=True))}
        for values in product(*(choices[name] for name in chosen))
    ]


def _assert_equal(got: Any, expected: Any) -> None:
    for one, other in zip(expected, got, strict=True):
        np.testing.assert_array_equal(other, one)


def _in_runtime(model: onnx.ModelProto, feeds: dict[str, Any]) -> list[Any]:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    outputs: list[Any] = session.run(None, feeds)
    return outputs
