"""Certificates name the models that they are about, and are refused for others."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
import pytest
from onnx import TensorProto, helper

import relayout
from relayout import RelayoutError, check_certificate, optimize
from relayout.cli import main
from relayout.cli.demo_model import network
from tests.digests import digests_with

Document = dict[str, Any]


@pytest.fixture
def given(tmp_path: Path) -> Path:
    path = tmp_path / "in.onnx"
    onnx.save(network(), path)
    return path


@pytest.fixture
def proof(given: Path) -> Path:
    path, output = given.with_name("proof.json"), given.with_name("out.onnx")
    call = ["optimize", str(given), "-o", str(output), "--no-verify", "--certificate", str(path)]
    assert main(call) == 0
    return path


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_it_has_the_hashes_of_both_files_the_settings_and_the_version(proof: Path) -> None:
    document = json.loads(proof.read_text())
    assert document["given"] == {"sha256": sha256(proof.with_name("in.onnx")), "data": {}}
    assert document["written"] == {"sha256": sha256(proof.with_name("out.onnx")), "data": {}}
    assert document["model"] == document["given"]["sha256"]
    assert document["relayout"] == relayout.__version__
    assert document["settings"]["minimize"] == "bytes"


def test_both_files_are_checked_and_short_hashes_printed(
    proof: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given, output = proof.with_name("in.onnx"), proof.with_name("out.onnx")
    capsys.readouterr()
    call = ["verify-certificate", str(proof), "--model", str(given), "--result", str(output)]
    assert main(call) == 0
    printed = capsys.readouterr().out
    assert f"given {sha256(given)[:12]} -> written {sha256(output)[:12]}" in printed
    assert f"made by relayout {relayout.__version__}" in printed
    assert (
        "least for the variants offered; target onnx, max rank 4, minimize bytes, opset" in printed
    )
    assert "they are about the given model, and the result is the one that is stated" in printed


@pytest.mark.parametrize("claim", [{"finding": "equal modulo ledger"}, {"conditions": ["N = 1"]}])
def test_that_both_models_are_equal_is_proved_anew(proof: Path, claim: dict[str, object]) -> None:
    files = proof.with_name("in.onnx"), proof.with_name("again.onnx")
    assert "equivalence" not in json.loads(proof.read_text()), "made without verification"
    assert main(["optimize", str(files[0]), "-o", str(files[1]), "--certificate", str(proof)]) == 0
    document = json.loads(proof.read_text())
    assert document["equivalence"] == {"finding": "identical", "ledger": {}, "conditions": []}
    assert relayout.check_certificate(document, *files) == []
    document["equivalence"] |= claim
    (fault,) = relayout.check_certificate(document, *files)
    assert "claimed otherwise than proved: proved identical" in fault


@pytest.mark.parametrize(("option", "name"), [("--model", "in.onnx"), ("--result", "out.onnx")])
def test_a_file_that_was_changed_is_refused_in_one_line(
    proof: Path, option: str, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = proof.with_name(name)
    model = onnx.load(file)
    model.doc_string = "another"
    onnx.save(model, file)
    capsys.readouterr()
    assert main(["verify-certificate", str(proof), option, str(file)]) == 1
    printed = capsys.readouterr()
    assert "has another hash" in printed.out
    assert len(printed.out.strip().splitlines()) == 1
    assert not printed.err


def _forge(which: str) -> Callable[[Document], None]:
    def forge(document: Document) -> None:
        document[which]["sha256"] = "0" * 64

    return forge


def _about_another(document: Document) -> None:
    document["model"] = "0" * 64


@pytest.mark.parametrize("forge", [_forge("given"), _forge("written"), _about_another])
def test_a_forged_hash_is_refused(forge: Callable[[Document], None]) -> None:
    given = network()
    result = optimize(given, verify=False)
    document = result.certificate()
    assert check_certificate(document, given, result.model) == []
    forge(document)
    assert len(check_certificate(document, given, result.model)) == 1


def _without_components(document: Document) -> None:
    for graph in document["graphs"]:
        graph.update(components=[], cost=0, bound=0)


def _without_graphs(document: Document) -> None:
    document["graphs"] = []


@pytest.mark.parametrize("empty", [_without_components, _without_graphs])
def test_an_empty_certificate_is_refused_with_and_without_the_model(
    proof: Path, empty: Callable[[Document], None]
) -> None:
    document = json.loads(proof.read_text())
    empty(document)
    proof.write_text(json.dumps(document))
    assert main(["verify-certificate", str(proof)]) == 1
    assert main(["verify-certificate", str(proof), "--model", str(proof.with_name("in.onnx"))]) == 1


def test_a_certificate_of_an_older_form_is_refused(proof: Path) -> None:
    document = json.loads(proof.read_text())
    proof.write_text(json.dumps({**document, "format": "relayout certificate 1"}))
    assert main(["verify-certificate", str(proof)]) == 2


def test_a_file_and_its_message_have_the_same_hashes(proof: Path) -> None:
    document = json.loads(proof.read_text())
    given, output = (onnx.load(proof.with_name(name)) for name in ("in.onnx", "out.onnx"))
    assert check_certificate(document, given, output) == []
    assert optimize(given, verify=False).certificate() == document


def test_a_model_that_is_replaced_by_its_result_keeps_its_hash(given: Path) -> None:
    before, proof = sha256(given), given.with_name("proof.json")
    call = ["optimize", str(given), "-o", str(given), "--no-verify", "--certificate", str(proof)]
    assert main(call) == 0
    document = json.loads(proof.read_text())
    assert document["given"]["sha256"] == before
    assert document["written"]["sha256"] == sha256(given) != before


def test_data_files_have_hashes_too(tmp_path: Path) -> None:
    path, output = tmp_path / "in.onnx", tmp_path / "out.onnx"
    onnx.save(network(), path, save_as_external_data=True, location="w.bin", size_threshold=0)
    document = optimize(path, output, verify=False).certificate()
    assert document["given"]["data"] == {"w.bin": sha256(tmp_path / "w.bin")}
    assert document["written"]["data"]
    assert check_certificate(document, path, output) == []
    data = bytearray((tmp_path / "w.bin").read_bytes())
    data[0] ^= 1
    (tmp_path / "w.bin").write_bytes(data)
    assert len(check_certificate(document, path)) == 1


def test_a_model_that_is_copied_has_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = network()
    model.ir_version = int(onnx.IR_VERSION) + 1
    path, output, proof = (tmp_path / name for name in ("in.onnx", "out.onnx", "proof.json"))
    onnx.save(model, path)
    assert main(["optimize", str(path), "-o", str(output), "--certificate", str(proof)]) == 0
    assert output.exists()
    assert not proof.exists()
    assert "no certificate" in capsys.readouterr().out
    result = optimize(model)
    assert not result.record().optimal
    with pytest.raises(RelayoutError, match="nothing to prove"):
        result.certificate()


def test_a_missing_folder_is_reported_before_anything_is_written(given: Path) -> None:
    output, proof = given.with_name("out.onnx"), given.parent / "no" / "proof.json"
    assert main(["optimize", str(given), "-o", str(output), "--certificate", str(proof)]) == 2
    assert not output.exists()


def test_a_model_without_transposes_has_a_certificate() -> None:
    shape = [2, 3]
    graph = helper.make_graph(
        [helper.make_node("Relu", ["x"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    document = optimize(model).certificate()
    assert check_certificate(document) == check_certificate(document, model, model) == []


@pytest.mark.parametrize(("strategy", "is_told"), [("exact", True), ("greedy", False)])
def test_only_what_is_proved_is_called_least(
    given: Path, strategy: str, is_told: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["optimize", str(given), "--no-verify", "--strategy", strategy]) == 0
    printed = capsys.readouterr().out
    assert ("fewest bytes, proved least for the variants offered" in printed) == is_told


def test_what_is_proved_is_what_was_made_least_in_the_end(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """One large Transpose in the place of two small ones would move more: bytes decide."""
    trade = """<ir_version: 8, opset_import: ["" : 17]>
    g (float[2,4] a, float[2,4] b, float[4,2000] c) => (float[2004,4] z, float[4,2004] y) {
      d = Transpose<perm=[1,0]>(a) e = Transpose<perm=[1,0]>(b)
      y = Concat<axis=1>(d, e, c) z = Transpose<perm=[1,0]>(y) }"""
    path = tmp_path / "in.onnx"
    onnx.save(onnx.parser.parse_model(trade), path)
    assert main(["optimize", str(path), "--no-verify", "--minimize", "count"]) == 0
    printed = capsys.readouterr().out
    assert "so the fewest bytes were chosen" in printed
    assert "fewest bytes, proved least" in printed


def test_the_same_model_has_the_same_certificate_in_every_process() -> None:
    assert len({digests_with(_SCRIPT, seed) for seed in ("0", "1", "4711")}) == 1


_SCRIPT = """
import json
import relayout
from relayout.cli.demo_model import network
from tests.suites.random_graphs import random_graph

for model in (network(), *(random_graph(seed).model for seed in range(6))):
    print(json.dumps(relayout.optimize(model, verify=False).certificate()))
"""
