"""Slow Transposes become two fast ones, which ONNX Runtime does not merge again."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest

import relayout
from relayout.targets.prices.table import shipped
from tests.rewrite.rewriting import parse

PRICES = shipped("onnxruntime_x86_64")

REVERSED = """
<ir_version: 10, opset_import: ["" : 17]>
g (float[{0},1,56,32] x) => (float[32,56,1,{0}] y) {{
    y = Transpose<perm = [3, 2, 1, 0]>(x)
}}
"""


def transposes(model: onnx.ModelProto) -> list[list[int]]:
    return [list(n.attribute[0].ints) for n in model.graph.node if n.op_type == "Transpose"]


@pytest.mark.parametrize("length", ["64", "N"])
def test_a_reversal_is_two_moves_of_one_axis(length: str) -> None:
    given = parse(REVERSED.format(length))
    result = relayout.optimize(given, target="ort")
    assert result.accepted
    assert len(transposes(result.model)) == 2
    data = np.random.default_rng(0).random((64, 1, 56, 32), np.float32)
    session = onnxruntime.InferenceSession(result.model.SerializeToString())
    (found,) = session.run(None, {"x": data})
    assert np.array_equal(found, data.transpose(3, 2, 1, 0))


def test_two_unknown_lengths_stay_one_transpose() -> None:
    text = REVERSED.format("N").replace("56", "M")
    result = relayout.optimize(parse(text), target="ort", verify=False)
    assert len(transposes(result.model)) == 1
    assert not result.changed


def test_other_objectives_split_nothing() -> None:
    given = parse(REVERSED.format("64"))
    result = relayout.optimize(given, target="ort", minimize="bytes", verify=False)
    assert len(transposes(result.model)) == 1


def test_a_second_run_changes_nothing() -> None:
    first = relayout.optimize(parse(REVERSED.format("64")), target="ort", verify=False).model
    assert not relayout.optimize(first, target="ort", verify=False).changed
