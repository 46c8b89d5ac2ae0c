"""`relayout verify`: what is said of two models."""

from __future__ import annotations

import json
from pathlib import Path

import onnx
import pytest
from onnx import parser

import relayout
from relayout.cli import main

GIVEN = """
<ir_version: 8, opset_import: ["" : 17]>
g (float[N,4,4] x) => (float[N,4,4] y, float[N,4] z)
{
   t = Transpose<perm=[0,2,1]>(x)
   r = Relu(t)
   y = Transpose<perm=[0,2,1]>(r)
   z = ReduceSum<keepdims=0>(x, axes)
}
"""
SAME = """
<ir_version: 8, opset_import: ["" : 17]>
g (float[N,4,4] x) => (float[N,4,4] y, float[N,4] z)
{
   y = Relu(x)
   z = ReduceSum<keepdims=0>(x, axes)
}
"""
WRONG = SAME.replace("y = Relu(x)", "r = Relu(x) y = Transpose<perm=[0,2,1]>(r)")
SCALED = """
<ir_version: 8, opset_import: ["" : 17]>
g (float[2,4] x) => (float[2,3] y)
<float[4,3] w = {1,2,3,4,5,6,7,8,9,1,2,3}, float s = {0.3}>
{ BODY }
"""


def _file(folder: Path, name: str, text: str) -> Path:
    model = parser.parse_model(text)
    if "axes" in text:
        model.graph.initializer.append(
            onnx.helper.make_tensor("axes", onnx.TensorProto.INT64, [1], [1])
        )
    path = folder / name
    onnx.save(model, path)
    return path


def _findings(before: Path, after: Path) -> dict[str, str]:
    found = relayout.verify_models(before, after)
    return {one.name: one.finding for one in found.outputs}


def test_outputs_are_identical(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given, same = _file(tmp_path, "a.onnx", GIVEN), _file(tmp_path, "b.onnx", SAME)
    assert main(["verify", str(given), str(same)]) == 0
    printed = capsys.readouterr().out
    assert "y: identical" in printed
    assert "over a prime field: 2 of 2 outputs equal" in printed
    assert "proved identical" in printed.splitlines()[-1]


def test_the_output_that_differs_is_refuted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given, wrong = _file(tmp_path, "a.onnx", GIVEN), _file(tmp_path, "b.onnx", WRONG)
    assert main(["verify", str(given), str(wrong), "--json"]) == 1
    outputs = {one["name"]: one for one in json.loads(capsys.readouterr().out)["outputs"]}
    assert outputs["y"]["finding"] == "refuted"
    assert "became" in outputs["y"]["reason"]
    assert outputs["z"]["finding"] == "identical"


def test_steps_that_change_rounding_are_named(tmp_path: Path) -> None:
    before = SCALED.replace("BODY", "m = Mul(x, s) y = MatMul(m, w)")
    after = SCALED.replace("BODY", "m = MatMul(x, w) y = Mul(m, s)")
    given, moved = _file(tmp_path, "a.onnx", before), _file(tmp_path, "b.onnx", after)
    found = relayout.verify_models(given, moved)
    assert [one.finding for one in found.outputs] == ["equal modulo ledger"]
    assert "factors moved past products" in found.verdict.summary()


def test_another_interface_is_refuted(tmp_path: Path) -> None:
    given = _file(tmp_path, "a.onnx", GIVEN)
    other = _file(
        tmp_path, "b.onnx", SAME.replace("float[N,4,4] x", "float[N,4,4] w").replace("(x", "(w")
    )
    assert set(_findings(given, other).values()) == {"refuted"}


def test_optimize_tells_that_it_is_proved(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = _file(tmp_path, "a.onnx", GIVEN)
    assert main(["optimize", str(given), "-o", str(tmp_path / "out.onnx")]) == 0
    assert "proved identical" in capsys.readouterr().out.splitlines()[-1]
