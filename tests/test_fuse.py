"""relayout.fuse and `relayout fuse`: what is written, reported and refused."""

from __future__ import annotations

import json
from pathlib import Path

import onnx
import onnx_ir as ir
import pytest

import relayout
from relayout.cli import main
from relayout.cli.demo_model import network
from relayout.graph.io.inline import NOT_AS_WRITTEN
from relayout.optimizer.fuse import fuse
from relayout.report.fusion import NodeRecord, RefusalRecord, node_text
from relayout.verify.verdict import NumericVerdict
from tests.graph.makers import complete, write, write_external


@pytest.fixture
def given(tmp_path: Path) -> Path:
    return write(network(), tmp_path / "network.onnx")


def calls(path: Path) -> list[str]:
    return [n.op_type for n in onnx.load(path).graph.node if n.domain == "relayout.fused"]


def test_fuse_writes_a_verified_model(given: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = given.with_name("out.onnx")
    assert main(["fuse", str(given), "-o", str(output)]) == 0
    assert calls(output)
    note, last = capsys.readouterr().out.strip().splitlines()[-2:]
    assert note == "note: N counts as 32; set it with --dim N=..."
    assert "18 -> " in last
    assert "proved identical; equal: 1 output, 1 shape, 1 run, exact; wrote" in last
    assert sorted(file.name for file in given.parent.iterdir()) == ["network.onnx", "out.onnx"]


def test_inline_restores_the_bytes(given: Path) -> None:
    fused, flat = given.with_name("fused.onnx"), given.with_name("flat.onnx")
    assert main(["fuse", str(given), "-o", str(fused), "--no-verify"]) == 0
    assert main(["fuse", str(fused), "--inline", "-o", str(flat)]) == 0
    assert flat.read_bytes() == given.read_bytes()


def test_fusing_again_changes_nothing(given: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fused, again = given.with_name("fused.onnx"), given.with_name("again.onnx")
    assert main(["fuse", str(given), "-o", str(fused), "--no-verify"]) == 0
    assert main(["fuse", str(fused), "-o", str(again)]) == 0
    assert fused.read_bytes() == again.read_bytes()
    assert "nothing to change: the model is as it was" in capsys.readouterr().out


def test_level_0_leaves_everything_alone(given: Path) -> None:
    output = given.with_name("out.onnx")
    assert main(["fuse", str(given), "-o", str(output), "--fuse-level", "0"]) == 0
    assert output.read_bytes() == given.read_bytes()


def test_a_limit_on_operators(given: Path) -> None:
    output = given.with_name("out.onnx")
    assert main(["fuse", str(given), "-o", str(output), "--max-depth", "2", "--no-verify"]) == 0
    sizes = [len(function.node) for function in onnx.load(output).functions]
    assert sizes
    assert max(sizes) <= 2


def test_json_has_groups_and_figures(given: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fuse", str(given), "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    kernels = {way: figures["kernels"] for way, figures in record["figures"].items()}
    assert kernels["relayout"] < kernels["tvm"] < kernels["unfused"]
    assert record["verified"] is True
    first = record["groups"][0]
    assert first["name"].endswith("_0")
    assert len(first["operators"]) == len(first["nodes"]) > 1
    assert first["inputs"]
    assert all(refusal["reason"] for refusal in record["refusals"])


def test_the_report_shows_all_ways(given: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fuse", str(given), "--all"]) == 0
    text = capsys.readouterr().out
    for word in ("unfused", "tvm", "relayout", "bytes read", "bytes written", "not fused"):
        assert word in text


def test_mode_tvm_has_figures_of_its_own(given: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fuse", str(given), "--json", "--mode", "tvm", "--no-verify"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert list(record["figures"]) == ["unfused", "tvm"]
    assert record["verified"] is False


def test_dump_prints_the_document_form(given: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fuse", str(given), "--dump"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("node[0], image, kind=8 extern outputs=[1:2]")
    assert lines[-1].startswith("group ")


def test_explain_names_the_group(given: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fuse", str(given), "--explain", "conv_1"]) == 0
    assert "runs in " in capsys.readouterr().out
    assert main(["fuse", str(given), "--explain", "conv_1", "--json"]) == 0
    (record,) = json.loads(capsys.readouterr().out)["nodes"]
    assert record["node"] == "conv_1"
    assert {"conv_1", "relu_2"} <= set(record["group"]["nodes"])


def test_an_explanation_in_words() -> None:
    refusals = (
        RefusalRecord("a", "pool", "two_anchors", "Pool is a second complex operator"),
        RefusalRecord("pool", None, "extern", "the model gives it back"),
    )
    assert list(node_text([NodeRecord("pool", "main", None, refusals)])) == [
        "[bold]pool[/bold] in main",
        "runs alone",
        "a -> pool: two_anchors: Pool is a second complex operator",
        "pool -> its consumers: extern: the model gives it back",
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--explain", "nobody"], "no node 'nobody'"),
        (["--dump", "-o", "out.onnx"], "only print"),
        (["--dim", "Q=3"], "no input has a dimension 'Q'"),
    ],
)
def test_bad_usage_is_one_line(
    given: Path, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["fuse", str(given), *arguments]) == 2
    errors = capsys.readouterr().err
    assert message in errors
    assert errors.count("\n") == 1


def test_nothing_is_written_if_the_numbers_differ(given: Path) -> None:
    verdict = NumericVerdict("differs", reason="made up")
    output = given.with_name("out.onnx")
    assert not fuse(given, output, comparing=lambda *_: verdict).accepted
    assert [file.name for file in given.parent.iterdir()] == ["network.onnx"]


def test_a_model_that_may_not_be_changed_is_copied(tmp_path: Path) -> None:
    old = network()
    old.opset_import[0].version = 6
    given, output = write(old, tmp_path / "in.onnx"), tmp_path / "out.onnx"
    assert main(["fuse", str(given), "-o", str(output)]) == 0
    assert output.read_bytes() == given.read_bytes()


def test_calls_that_were_changed_are_taken_apart_and_reported(
    given: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fused, flat = given.with_name("fused.onnx"), given.with_name("flat.onnx")
    assert main(["fuse", str(given), "-o", str(fused), "--no-verify"]) == 0
    model = onnx.load(fused)
    model.graph.node[0].output[0] = model.graph.node[1].input[0] = "renamed"
    write(model, fused)
    assert main(["fuse", str(fused), "--inline", "-o", str(flat)]) == 0
    assert NOT_AS_WRITTEN in capsys.readouterr().out
    assert not calls(flat)


# from Python


def test_from_python_in_every_form() -> None:
    results = [relayout.fuse(form, verify=False) for form in (network(), ir.from_proto(network()))]
    for result in results:
        assert result.accepted
        assert result.changed
        assert len(result.model.functions) == len(result.record().groups)


def test_the_result_is_verified_against_a_message() -> None:
    result = relayout.fuse(network())
    assert result.verdict is not None
    assert result.verdict.exact


def test_the_model_with_every_field_loses_none() -> None:
    given = complete()
    fused = relayout.fuse(given, verify=False).model
    assert relayout.fuse(fused, inline=True, verify=False).model == given


def test_data_files_are_brought_along(tmp_path: Path) -> None:
    given = write_external(tmp_path / "in")
    (tmp_path / "out").mkdir()
    output, flat = tmp_path / "out" / "fused.onnx", tmp_path / "out" / "flat.onnx"
    assert relayout.fuse(given, output).accepted
    assert calls(output)
    assert relayout.fuse(output, flat, inline=True).accepted
    assert flat.read_bytes() == given.read_bytes()


def test_an_unknown_mode_is_refused() -> None:
    with pytest.raises(relayout.RelayoutError, match="the modes are relayout, tvm"):
        relayout.fuse(network(), mode="other")
