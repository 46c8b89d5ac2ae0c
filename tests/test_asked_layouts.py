"""Inputs and outputs in the layouts that a caller asks for, by name."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx.reference import ReferenceEvaluator

import relayout
from relayout import RelayoutError
from relayout.cli import main
from relayout.cli.demo_model import network

TEXT = """<ir_version: 8, opset_import: ["" : 17]>
g (float[2,3,4,5] x, float[3,2] w, bool c) => (float[2,3,4,5] y, float[2,3,4,5] z) {
    a = Relu(x)
    y = Add(a, x)
    z = If (c) <then_branch = t () => (float[2,3,4,5] r) { r = Neg(y) },
                else_branch = e () => (float[2,3,4,5] s) { s = Identity(x) }>
}"""


def test_a_layout_that_was_asked_for_is_the_interface() -> None:
    result = relayout.optimize(network(), input_layouts={"image": "NCHW"})
    assert result.accepted
    assert result.verdict is not None
    assert result.after.transposes == 0
    shape = result.model.graph.input[0].type.tensor_type.shape.dim
    assert [dim.dim_value or dim.dim_param for dim in shape] == ["N", 3, 16, 16]
    notices = result.record().notices
    assert any("input 'image' is now Transpose(perm=[0, 3, 1, 2])" in each for each in notices)


@pytest.mark.parametrize("target", ["onnx", "ort", "nhwc"])
def test_every_target_takes_layouts(target: str) -> None:
    result = relayout.optimize(network(), target=target, input_layouts={"image": "NCHW"})
    assert result.accepted
    assert result.verdict is not None


@pytest.mark.parametrize("taken", [True, False])
def test_numbers_are_the_same_but_for_their_order(taken: bool) -> None:
    given = onnx.parser.parse_model(TEXT)
    asked = {"x": "NHWC"}, {"y": "NHWC", "z": "NWCH"}
    made = relayout.optimize(given, input_layouts=asked[0], output_layouts=asked[1]).model
    x = np.random.default_rng(0).normal(size=(2, 3, 4, 5)).astype(np.float32)
    other = {"w": np.zeros((3, 2), np.float32), "c": np.array(taken)}
    y, z = ReferenceEvaluator(given).run(None, {"x": x, **other})
    feeds = {"x": x.transpose(0, 2, 3, 1), **other}
    new_y, new_z = ReferenceEvaluator(made).run(None, feeds)
    np.testing.assert_array_equal(new_y, np.transpose(y, (0, 2, 3, 1)))
    np.testing.assert_array_equal(new_z, np.transpose(z, (0, 3, 1, 2)))


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        ({"nobody": "NHWC"}, "no input 'nobody'; it has image"),
        ({"image": "NHW"}, "has 4 axes and cannot be 'NHW'; it is NHWC"),
        ({"image": "NHWX"}, "in any order of these letters"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_line(asked: dict[str, str], reason: str) -> None:
    with pytest.raises(RelayoutError, match=reason):
        relayout.optimize(network(), input_layouts=asked)


def test_the_command_line_takes_layouts_by_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    onnx.save(network(), tmp_path / "in.onnx")
    command = ["optimize", str(tmp_path / "in.onnx"), "-o", str(tmp_path / "out.onnx")]
    assert main([*command, "--input-layout", "image=NCHW"]) == 0
    assert "-> 0 Transposes; proved identical" in capsys.readouterr().out
    assert main([*command, "--certificate", "c.json", "--input-layout", "image=NCHW"]) == 2
    with pytest.raises(SystemExit) as stopped:
        main([*command, "--input-layout", "image"])
    assert stopped.value.code == 2
    assert "not of the form NAME=NHWC" in capsys.readouterr().err
