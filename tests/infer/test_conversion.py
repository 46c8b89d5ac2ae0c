"""What each tensor is, and what it becomes for a target."""

from __future__ import annotations

import json
from pathlib import Path

import onnx
import pytest

import relayout
from relayout.cli import main
from relayout.report.layouts import LayoutsRecord
from tests.rewrite.rewriting import parse

WEIGHT = ", ".join(map(str, range(16)))
TEXT = f"""converted (float[2,6,5,4] x, float[3,7] m) => (float[2,40,7] y)
<int64[3] split = {{2, -1, 3}}, float[4,2,1,2] w = {{{WEIGHT}}}, float[4] bias = {{1,2,3,4}}> {{
    t = Transpose<perm = [0, 3, 1, 2]>(x)
    a = Conv<group = 2, pads = [0, 0, 0, 1]>(t, w, bias)
    r = Relu(a)
    b = Reshape(r, split)
    y = MatMul(b, m)
}}"""


def became(record: LayoutsRecord) -> dict[str, tuple[str, tuple[str, ...] | None]]:
    return {tensor.name: (tensor.layout, tensor.becomes) for tensor in record.tensors}


@pytest.mark.parametrize(("target", "weight"), [("nhwc", "HWIO"), ("nhwc-ohwi", "OHWI")])
def test_each_tensor_before_and_after(target: str, weight: str) -> None:
    """What is given channels last stays so, its Transpose is gone, a copy is named second."""
    found = became(relayout.infer_layouts(parse(TEXT), target=target))
    assert found == {
        "x": ("NHWC", ("NHWC",)),
        "t": ("NCHW", ()),
        "w": ("OIHW", (weight,)),
        "bias": ("Tensor", ("Tensor",)),
        "a": ("NCHW", ("NHWC", "NCHW")),
        "r": ("NCHW", ("NCHW",)),
        "split": ("Tensor", ("Tensor",)),
        "b": ("NTensor", ("NTensor",)),
        "m": ("Tensor", ("Tensor",)),
        "y": ("NTensor", ("NTensor",)),
    }


def test_a_model_that_stays_as_it_is_becomes_itself() -> None:
    model = parse("still (float[2,3,4,5] x) => (float[2,3,4,5] y) { y = Relu(x) }")
    found = became(relayout.infer_layouts(model, target="nhwc"))
    assert found == {"x": ("NCHW", ("NCHW",)), "y": ("NCHW", ("NCHW",))}


def test_names_that_look_like_those_of_copies_are_their_own() -> None:
    text = """names (float[2,4,6,5] x, float[2,4,6,5] x_0231) => (float[2,4,6,5] y)
    <float[4,4,1,1] w = {1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16}> {
        a = Conv(x, w)
        b = Conv(x_0231, w)
        y = Add(a, b)
    }"""
    found = became(relayout.infer_layouts(parse(text), target="nhwc"))
    assert found["x"][0] == found["x_0231"][0] == "NCHW"
    assert "NHWC" in (found["x_0231"][1] or ())
    assert found["a"] == found["b"] == ("NCHW", ("NHWC",))


def test_without_a_target_nothing_is_said_about_it() -> None:
    record = relayout.infer_layouts(parse(TEXT))
    assert record.target is None
    assert {tensor.becomes for tensor in record.tensors} == {None}


def test_the_command_line_has_a_column_and_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(parse(TEXT), path)
    arguments = ["inspect", str(path), "--layouts", "--target", "nhwc"]
    assert main(arguments) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert any(row[-2:] == ["for", "nhwc"] for row in rows)
    assert ["t", "[2,4,6,5]", "NCHW", "Feature", "backwards", "gone"] in rows
    assert main([*arguments, "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["target"] == "nhwc"
    by_name = {tensor["name"]: tensor for tensor in record["tensors"]}
    assert by_name["a"]["becomes"] == ["NHWC", "NCHW"]
