"""`relayout verify --reduce`: faults of several kinds, each found again in a few nodes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper, parser

from relayout.cli import main
from relayout.verify.reduction.reduce import reduce_pair
from relayout.verify.verdict import NumericOptions

BODY = """
    a = Conv <pads = [1,1,1,1]> (x, w)
    b = Relu (a)
    c = Conv <pads = [1,1,1,1]> (b, w)
    d = Add (c, x)
    e = Transpose <perm = [0,2,3,1]> (d)
    f = Sigmoid (e)
    g = Softmax <axis = -1> (f)
    h = Concat <axis = 3> (g, f)
    i = ReduceMean <axes = [1], keepdims = 0> (h)
    j = MatMul (i, v)
    k = Tanh (j)
    y = Add (k, b1)"""
FAULTS = {
    "another axis": ("g = Softmax <axis = -1> (f)", "g = Softmax <axis = 1> (f)", "Softmax"),
    "another perm": ("perm = [0,2,3,1]", "perm = [0,3,2,1]", "Transpose"),
    "another edge": ("d = Add (c, x)", "d = Add (c, a)", "Add"),
    "another operator": ("b = Relu (a)", "b = LeakyRelu <alpha = 0.5> (a)", "Relu"),
    "another order": ("Concat <axis = 3> (g, f)", "Concat <axis = 3> (f, g)", "Concat"),
    "other pads": ("c = Conv <pads = [1,1,1,1]>", "c = Conv <pads = [2,1,0,1]>", "Conv"),
    "another constant": ("j = MatMul (i, v)", "j = MatMul (i, v2)", "MatMul"),
}


def model(body: str) -> onnx.ModelProto:
    text = '<ir_version: 8, opset_import: ["" : 17]> '
    made = parser.parse_model(f"{text} g (float[n,4,4,4] x) => (float[n,4,5] y) {{ {body} }}")
    rng = np.random.default_rng(0)
    shapes = {"w": (4, 4, 3, 3), "v": (8, 5), "v2": (8, 5), "b1": (5,)}
    for name, shape in shapes.items():
        array = rng.normal(0, 0.5, shape).astype(np.float32)
        made.graph.initializer.append(numpy_helper.from_array(array, name))
    return made


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_found_in_a_few_nodes(name: str, tmp_path: Path) -> None:
    text, other, operator = FAULTS[name]
    paths = tmp_path / "a.onnx", tmp_path / "b.onnx"
    onnx.save(model(BODY), paths[0])
    onnx.save(model(BODY.replace(text, other)), paths[1])
    found = reduce_pair(*paths, tmp_path / "parts", NumericOptions())
    assert found is not None
    assert found.verdict.status == "differs"
    for path in (found.before, found.after):
        onnx.checker.check_model(path)
    nodes = [node.op_type for node in onnx.load(found.before).graph.node]
    assert operator in nodes
    assert len(nodes) <= 3


def test_the_command_writes_both_parts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text, other, _ = FAULTS["another axis"]
    onnx.save(model(BODY), tmp_path / "a.onnx")
    onnx.save(model(BODY.replace(text, other)), tmp_path / "b.onnx")
    files = [str(tmp_path / name) for name in ("a.onnx", "b.onnx")]
    assert main(["verify", *files, "--json", "--reduce", str(tmp_path / "parts")]) == 1
    written = json.loads(capsys.readouterr().out)["reduced"]
    assert [Path(path).name for path in written] == ["a.onnx", "b.onnx"]
    assert all(Path(path).parent == tmp_path / "parts" for path in written)


def test_equal_models_are_not_made_smaller(tmp_path: Path) -> None:
    onnx.save(model(BODY), tmp_path / "a.onnx")
    onnx.save(model(BODY), tmp_path / "b.onnx")
    paths = tmp_path / "a.onnx", tmp_path / "b.onnx"
    assert reduce_pair(*paths, tmp_path / "parts", NumericOptions()) is None
