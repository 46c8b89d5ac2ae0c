"""The command line as a newcomer meets it: output, exit codes, errors in one line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from importlib.metadata import EntryPoint
from pathlib import Path

import onnx
import pytest

from relayout.assign.strategies.registry import STRATEGIES
from relayout.cli import main
from relayout.cli.demo_model import network
from relayout.fusion.partition import MODES
from relayout.infer.looks import Look
from relayout.ops.measure import Objective
from relayout.optimizer.optimize import optimize
from relayout.targets.target import TARGETS


@pytest.fixture
def given(tmp_path: Path) -> Path:
    path = tmp_path / "network.onnx"
    path.write_bytes(network().SerializeToString())
    return path


def transposes(path: Path) -> int:
    return sum(node.op_type == "Transpose" for node in onnx.load(path).graph.node)


def test_optimize_writes_a_verified_model(given: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = given.with_name("out.onnx")
    assert main(["optimize", str(given), "-o", str(output)]) == 0
    assert transposes(output) == 1
    last = capsys.readouterr().out.strip().splitlines()
    assert "8 -> 1 Transpose; proved identical; equal" in " ".join(last)
    assert sorted(file.name for file in given.parent.iterdir()) == ["network.onnx", "out.onnx"]


def test_optimize_in_place(given: Path) -> None:
    assert main(["optimize", str(given), "-o", str(given)]) == 0
    assert transposes(given) == 1


def test_optimize_without_output_writes_nothing(given: Path) -> None:
    assert main(["optimize", str(given)]) == 0
    assert [file.name for file in given.parent.iterdir()] == ["network.onnx"]


def test_optimize_copies_what_cannot_be_improved(given: Path) -> None:
    once, twice = given.with_name("once.onnx"), given.with_name("twice.onnx")
    assert main(["optimize", str(given), "-o", str(once), "--no-verify"]) == 0
    assert main(["optimize", str(once), "-o", str(twice)]) == 0
    assert once.read_bytes() == twice.read_bytes()


def test_json_is_one_document(given: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["optimize", str(given), "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["before"]["transposes"] == 8
    assert record["after"]["transposes"] == 1
    assert record["verified"] is True
    assert record["optimal"] is True
    assert len(record["left"]) == 1


def test_inspect_reports_where_the_transposes_are(
    given: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["inspect", str(given), "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["figures"]["transposes"] == 8
    assert [port["name"] for port in record["inputs"]] == ["image"]
    assert len(record["transposes"]) == 8


@pytest.mark.parametrize(("limit", "code"), [(7, 1), (8, 0)])
def test_check_is_for_ci(given: Path, limit: int, code: int) -> None:
    assert main(["check", str(given), "--max-transposes", str(limit)]) == code


def test_free_inputs_change_the_interface_and_report_it(
    given: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = given.with_name("out.onnx")
    assert main(["optimize", str(given), "-o", str(output), "--free-inputs", "--json"]) == 0
    assert transposes(output) == 0
    (image,) = onnx.load(output).graph.input
    dims = [dim.dim_param or dim.dim_value for dim in image.type.tensor_type.shape.dim]
    assert dims == ["N", 3, 16, 16]
    onnx.checker.check_model(output, full_check=True)
    record = json.loads(capsys.readouterr().out)
    assert any("input 'image' is now" in notice for notice in record["notices"])
    assert record["verified"] is True


def test_a_certificate_is_written_and_checked(given: Path) -> None:
    proof = given.with_name("proof.json")
    assert main(["optimize", str(given), "--certificate", str(proof)]) == 0
    assert main(["verify-certificate", str(proof), "--model", str(given)]) == 0
    document = json.loads(proof.read_text())
    document["graphs"][0]["bound"] += 1
    proof.write_text(json.dumps(document))
    assert main(["verify-certificate", str(proof)]) == 1


def test_a_certificate_of_another_model_is_refused(given: Path, tmp_path: Path) -> None:
    proof, other = tmp_path / "proof.json", tmp_path / "other.onnx"
    assert main(["optimize", str(given), "-o", str(other), "--certificate", str(proof)]) == 0
    assert main(["verify-certificate", str(proof), "--model", str(other)]) == 1


def test_demo_prints_the_result(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo"]) == 0
    printed = capsys.readouterr().out
    assert "8 -> 1 Transpose; proved identical; equal" in printed


BAD_CALLS = [
    [],
    ["frobnicate"],
    ["optimize"],
    ["optimize", "GIVEN", "--shape", "image"],
    ["optimize", "GIVEN", "--dim", "N=many"],
    ["optimize", "GIVEN", "--minimize", "beauty"],
    ["optimize", "GIVEN", "--target", "abacus"],
    ["compare", "GIVEN", "--target", "abacus"],
    ["fuse", "GIVEN", "--mode", "all"],
    ["inspect", "GIVEN", "--look", "up"],
    ["check", "GIVEN", "--max-transposes", "-1"],
    ["optimize", "GIVEN", "--profile", "missing.toml"],
    ["optimize", "GIVEN", "--budget", "-3"],
    ["optimize", "GIVEN", "--budget", "nan"],
    ["optimize", "GIVEN", "--tolerance", "-1"],
    ["optimize", "GIVEN", "--tolerance", "inf"],
    ["optimize", "GIVEN", "--memory", "0"],
    ["optimize", "GIVEN", "--measure", "--threads", "0"],
    ["bench", "GIVEN", "--seconds", "0"],
    ["bench", "GIVEN", "--threads", "0"],
    ["bench", "GIVEN", "--rounds", "0"],
    ["sweep", "GIVEN", "-o", "swept", "--jobs", "0"],
    ["sweep", "GIVEN", "-o", "swept", "--seconds", "-1"],
    ["check", "GIVEN"],
]


@pytest.mark.parametrize("call", BAD_CALLS, ids=" ".join)
def test_a_bad_call_is_reported_in_one_line(
    given: Path, call: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        main([str(given) if word == "GIVEN" else word for word in call])
    assert stopped.value.code == 2
    assert len(capsys.readouterr().err.strip().splitlines()) == 1


BAD_INPUT = [
    (["optimize", "missing.onnx"], "missing.onnx"),
    (["inspect", "EMPTY"], "empty"),
    (["check", "TEXT", "--max-transposes", "1"], "not an ONNX model"),
    (["optimize", "GIVEN", "-o", "no/such/folder/x.onnx"], "folder does not exist"),
    (["optimize", "GIVEN", "--shape", "picture=1,2"], "no input 'picture'; it has image"),
    (["optimize", "GIVEN", "--dim", "batch=2"], "the named ones are: N"),
    (["optimize", "GIVEN", "--keep-nchw", "conv1"], "no node is named 'conv1'; near it: conv_1"),
    (["optimize", "GIVEN", "--prices", "missing.json"], "missing.json: No such file or directory"),
    (["explain", "GIVEN", "conv1"], "near it: conv_1"),
    (["fuse", "GIVEN", "--explain", "conv1"], "near it: conv_1"),
    (["fuse", "GIVEN", "--stop", "conv1"], "near it: conv_1"),
    (["inspect", "GIVEN", "--target", "nhwc"], "--target goes with --layouts"),
    (["inspect", "GIVEN", "--layouts", "--report", "r.html"], "leave out --layouts"),
    (["run", "GIVEN", "--backend", "ort", "--feeds", "missing.npz"], "'missing.npz': No such"),
    (["run", "GIVEN", "--backend", "ort", "--feeds", "TEXT"], "is no file *.npz"),
    (
        ["run", "GIVEN", "--backend", "ort", "--device", "cuda", "--dim", "N=1"],
        "relayout: ONNX Runtime runs models",
    ),
    (["verify-certificate", "TEXT"], "not JSON"),
    (["verify-certificate", "missing.json"], "missing.json"),
]


@pytest.mark.parametrize(
    ("call", "message"), BAD_INPUT, ids=[" ".join(call) for call, _ in BAD_INPUT]
)
def test_bad_input_is_reported_in_one_line(
    given: Path, call: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    empty, text = given.with_name("empty.onnx"), given.with_name("text.onnx")
    empty.touch()
    text.write_text("<html>not found</html>")
    places = {"GIVEN": given, "EMPTY": empty, "TEXT": text}
    assert main([str(places.get(word, word)) for word in call]) == 2
    printed = capsys.readouterr()
    assert message in printed.err
    assert len(printed.err.strip().splitlines()) == 1
    assert not printed.out


def test_a_model_that_no_runtime_runs_is_written_if_it_is_proved(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given, output = tmp_path / "in.onnx", tmp_path / "out.onnx"
    model = onnx.parser.parse_model(
        """<ir_version: 10, opset_import: ["" : 21, "own" : 1]>
        g (float[2,3] x) => (float[2,3] y) {
            a = Transpose<perm=[1,0]>(x)
            b = Transpose<perm=[1,0]>(a)
            y = own.Unheard(b)
        }"""
    )
    given.write_bytes(model.SerializeToString())
    assert main(["optimize", str(given), "-o", str(output)]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "proved identical; unknown: ONNX Runtime:" in printed
    assert transposes(output) == 0


def test_an_unknown_option_is_refused_by_its_command_with_what_is_near(
    given: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(["optimize", str(given), "--mnimize=count"])
    told = capsys.readouterr().err
    assert "unrecognized arguments: --mnimize=count; near it: --minimize" in told
    assert told.endswith("; see 'relayout optimize --help'\n")


def test_a_fault_of_our_own_is_reported_in_one_line(
    given: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ArithmeticError("the components\ndo not add up")

    monkeypatch.setattr("relayout.optimizer.optimize.optimize", fail)
    assert main(["optimize", str(given)]) == 3
    printed = capsys.readouterr().err.strip()
    assert "ArithmeticError: the components do not add up" in printed
    assert "\n" not in printed
    monkeypatch.setenv("RELAYOUT_DEBUG", "1")
    with pytest.raises(ArithmeticError):
        main(["optimize", str(given)])


LISTED = [
    ("optimize", "--target", TARGETS),
    ("optimize", "--strategy", STRATEGIES),
    ("optimize", "--minimize", [each.value for each in Objective]),
    ("compare", "--target", TARGETS),
    ("fuse", "--mode", MODES),
    ("inspect", "--look", [each.value for each in Look]),
]


@pytest.mark.parametrize(("command", "option", "names"), LISTED)
def test_help_has_a_line_for_each_name(
    command: str,
    option: str,
    names: Iterable[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    with pytest.raises(SystemExit):
        main([command, "--help"])
    _, _, after = capsys.readouterr().out.partition(f"\n  {option} NAME")
    lines, _, _ = after.partition("\n  -")
    listed = [line.split()[0] for line in lines.splitlines() if ": " in line]
    assert listed == [f"{name}:" for name in names]
    assert lines.count("default") == 1


@pytest.mark.parametrize("command", ["optimize", "compare", "fuse"])
def test_options_of_long_commands_come_in_groups(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main([command, "--help"])
    printed = capsys.readouterr().out
    assert "\nverification:\n" in printed
    assert "\nwhat is reported:\n" in printed


def test_a_plugin_that_cannot_be_loaded_leaves_a_help(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = EntryPoint("abacus", "no_such_module:ABACUS", TARGETS.group)
    monkeypatch.setitem(TARGETS.__dict__, "_installed", {"abacus": broken})
    with pytest.raises(SystemExit) as stopped:
        main(["optimize", "--help"])
    assert stopped.value.code == 0
    assert "abacus: the plugin relayout.targets 'abacus' cannot" in capsys.readouterr().out


def test_help_imports_nothing_heavy() -> None:
    """What makes `relayout --help` quick: onnx and its friends are not loaded for it."""
    script = (
        "import sys; from relayout.cli import command_parser; command_parser().format_help(); "
        "print([name for name in ('onnx', 'numpy', 'rich', 'scipy') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, env=os.environ
    )
    assert done.stdout.strip() == "[]"


def test_the_package_runs_as_a_module(given: Path) -> None:
    command = [sys.executable, "-m", "relayout", "check", str(given), "--max-transposes", "8"]
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0


def test_progress_tells_of_every_attempt() -> None:
    stages: list[str] = []
    optimize(network(), verify=False, stage=stages.append)
    nodes = len(network().graph.node)
    told = [stage for stage in stages if "attempt" in stage]
    assert told[0] == f"optimising {nodes} nodes, attempt 1: fewest bytes"
    assert len(told) == len(set(told))


@pytest.fixture
def _no_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    for name in [name for name in sys.modules if name.startswith("relayout.backends.torch")]:
        monkeypatch.delitem(sys.modules, name)


@pytest.mark.usefixtures("_no_torch")
def test_models_run_and_are_timed_without_torch(
    given: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", str(given), "--dim", "N=2", "--backend", "ort"]) == 0
    assert "float32" in capsys.readouterr().out
    assert main(["bench", str(given), "--seconds", "0.1", "--threads", "1"]) == 0
    told = capsys.readouterr().out
    assert "ort, as given" in told
    assert "torch" not in told


@pytest.mark.parametrize(
    ("arguments", "missing"),
    [
        (["run", "--dim", "N=2"], ("torch", "torch")),
        (["bench", "--backend", "torch"], ("torch", "torch")),
        (["compile", "-o", "out.tflite", "--target", "litert"], ("ai_edge_litert", "litert")),
    ],
)
def test_a_missing_package_is_named_with_the_command_that_installs_it(
    arguments: list[str],
    missing: tuple[str, str],
    given: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    package, extra = missing
    monkeypatch.setitem(sys.modules, package, None)
    for name in [name for name in sys.modules if name.startswith(f"relayout.backends.{extra}")]:
        monkeypatch.delitem(sys.modules, name)
    command, *rest = arguments
    assert main([command, str(given), *rest]) == 2
    (told,) = capsys.readouterr().err.splitlines()
    assert told.endswith(f": pip install 'relayout[{extra}]'")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_completes_commands_and_options(
    shell: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert "optimize" in script
    assert ("-l report" if shell == "fish" else "--report") in script


def test_bash_runs_the_completion_script(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "bash"]) == 0
    script = capsys.readouterr().out
    asked = 'COMP_WORDS=(relayout insp); COMP_CWORD=1; _relayout; echo "${COMPREPLY[@]}"'
    shown = subprocess.run(
        ["bash", "-c", f"{script}\n{asked}"], capture_output=True, text=True, check=True
    )
    assert shown.stdout.strip() == "inspect"


@pytest.mark.parametrize(
    ("option", "reason"),
    [
        ("image=1,2", "input 'image' is [N,16,16,3], which 1,2 does not fit"),
        ("image=1,16,16,4", "input 'image' is [N,16,16,3], which 1,16,16,4 does not fit"),
        ("picture=1,16,16,3", "the model has no input 'picture'; it has image"),
    ],
)
def test_a_shape_that_does_not_fit_is_refused_in_one_line(
    option: str, reason: str, given: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["optimize", str(given), "--shape", option]) == 2
    assert capsys.readouterr().err == f"relayout: {reason}\n"


def test_check_takes_files_and_folders(
    given: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "models" / "inner"
    folder.mkdir(parents=True)
    assert main(["optimize", str(given), "-o", str(folder / "b.onnx"), "--no-verify"]) == 0
    capsys.readouterr()
    asked = ["check", str(given), str(tmp_path / "models"), "--max-transposes"]
    assert main([*asked, "4"]) == 1
    printed = capsys.readouterr().out
    assert "too many" in printed
    assert "1 of 2 models have more than 4" in printed
    assert main([*asked, "8"]) == 0
    (tmp_path / "empty").mkdir()
    assert main(["check", str(tmp_path / "empty"), "--max-transposes", "0"]) == 2
