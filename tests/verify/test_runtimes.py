"""What runs where, and what no runtime can run."""

from __future__ import annotations

from pathlib import Path

import onnx
from onnx import TensorProto, helper

from relayout.verify.numeric import compare
from tests.verify.models import constant, node, one_node, save, tensor


def test_an_operator_set_too_new_is_left_to_the_reference(tmp_path: Path) -> None:
    def model(path: Path, op_type: str) -> Path:
        made = node(op_type, ["x"], ["y"])
        return save(path, [made], [tensor("x", ("N", 2))], [tensor("y", ("N", 2))], opset=28)

    before = model(tmp_path / "a.onnx", "Neg")
    verdict = compare(before, before)
    assert verdict.exact
    assert verdict.runtime == "the reference evaluator"
    assert compare(before, model(tmp_path / "b.onnx", "Abs")).status == "differs"


def test_an_unknown_operator(tmp_path: Path) -> None:
    path = one_node(tmp_path / "a.onnx", "Frobnicate", domain="strange")
    verdict = compare(path, path)
    assert verdict.status == "unknown"
    assert "ONNX Runtime: " in verdict.reason
    assert "the reference evaluator: " in verdict.reason
    assert "\n" not in verdict.summary()


def test_a_second_model_that_does_not_run_differs(tmp_path: Path) -> None:
    before = one_node(tmp_path / "a.onnx", "Relu")
    after = one_node(tmp_path / "b.onnx", "Frobnicate", domain="strange")
    verdict = compare(before, after)
    assert verdict.status == "differs"
    assert "runs only the first model" in verdict.reason


def test_files_that_are_not_models(tmp_path: Path) -> None:
    path = one_node(tmp_path / "a.onnx", "Relu")
    (tmp_path / "html.onnx").write_text("<html>no model</html>")
    (tmp_path / "empty.onnx").write_bytes(b"")
    for other in ("html", "empty", "missing"):
        verdict = compare(path, tmp_path / f"{other}.onnx")
        assert verdict.status == "unknown"
        assert f"{other}.onnx" in verdict.reason


def test_inputs_of_a_kind_not_drawn(tmp_path: Path) -> None:
    maps = helper.make_map_type_proto(
        TensorProto.INT64, helper.make_tensor_type_proto(TensorProto.FLOAT, ())
    )
    made = node("Identity", ["m"], ["y"])
    given = helper.make_value_info("m", maps)
    path = save(tmp_path / "a.onnx", [made], [given], [helper.make_value_info("y", maps)])
    verdict = compare(path, path)
    assert verdict.status == "unknown"
    assert "input 'm'" in verdict.reason


def test_external_data_is_found_beside_the_model(tmp_path: Path) -> None:
    def model(name: str, weight: float) -> Path:
        folder = tmp_path / name
        folder.mkdir()
        add = node("Add", ["x", "w"], ["y"])
        weights = constant("w", [weight] * 500)
        path = save(folder / "m", [add], [tensor("x", (500,))], [tensor("y", (500,))], [weights])
        onnx.save(onnx.load(path), path, save_as_external_data=True, location="m.data")
        assert (folder / "m.data").stat().st_size == 2000
        return path

    before = model("a", 1.0)
    assert compare(before, model("b", 1.0)).exact
    assert compare(before, model("c", 2.0)).status == "differs"
