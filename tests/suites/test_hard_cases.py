"""Every hard case gives the same numbers, with no more Transposes or bytes, also when run again."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import helper

import relayout
from tests.suites.hard_cases import CASES, HardCase, feeds_of

ROWS = 39


def _results(model: onnx.ModelProto, feeds: dict[str, Any]) -> list[Any]:
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    return list(ort.InferenceSession(model.SerializeToString(), options).run(None, feeds))


def _shapes(model: onnx.ModelProto) -> dict[str, list[int]]:
    return {
        port.name: [dim.dim_value for dim in port.type.tensor_type.shape.dim]
        for port in model.graph.input
    }


def _with_stale_shape(model: onnx.ModelProto, name: str) -> None:
    """A recorded shape in the order that the tensor had elsewhere."""
    model.graph.value_info.append(helper.make_tensor_value_info(name, 1, [None, 1, None, 1]))


def _variants() -> list[Any]:
    return [
        pytest.param(
            case, regime, is_open, id=f"{case.id}-{regime}-{'open' if is_open else 'fixed'}"
        )
        for case in CASES
        for regime in case.regimes
        for is_open in (False, True)
    ]


def test_every_row_has_a_case() -> None:
    assert {case.row for case in CASES} == set(range(1, ROWS + 1))


@pytest.mark.parametrize(("case", "regime", "is_open"), _variants())
def test_hard_case(case: HardCase, regime: str, is_open: bool) -> None:
    model = case.model(regime, is_open=is_open)
    feeds = feeds_of(model, _shapes(case.model(regime)))
    if "shape" in feeds:
        feeds["shape"] = np.asarray([1, 5, 7, 3], np.int64)
    if case.value_info:
        _with_stale_shape(model, case.value_info)
    found = relayout.optimize(model, target=case.target, minimize=case.objective, verify=False)
    allowed = found.before.transposes if case.left is None or is_open else case.left
    assert found.after.transposes <= allowed
    assert found.after.bytes_moved <= found.before.bytes_moved
    for fed in (feeds, *_replaced(case, model, feeds)):
        _assert_same(_results(model, fed), _results(found.model, fed))
    again = relayout.optimize(
        found.model, target=case.target, minimize=case.objective, verify=False
    )
    assert not again.changed


def _replaced(
    case: HardCase, model: onnx.ModelProto, feeds: dict[str, Any]
) -> list[dict[str, Any]]:
    """Inputs with other values for what a caller may replace."""
    if not case.overridable:
        return []
    other = {
        tensor.name: onnx.numpy_helper.to_array(tensor) + 2 for tensor in model.graph.initializer
    }
    return [{**feeds, **other}]


def _assert_same(wanted: list[Any], found: list[Any]) -> None:
    for one, other in zip(wanted, found, strict=True):
        assert one.dtype == other.dtype
        if one.dtype.kind == "f":
            np.testing.assert_allclose(other, one, rtol=1e-5, atol=1e-5)
            np.testing.assert_array_equal(np.signbit(other), np.signbit(one))
        else:
            np.testing.assert_array_equal(other, one)
