"""Where models are written: links are followed, streams are written to, and all or nothing is."""

from __future__ import annotations

import io
import json
import os
import resource
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import onnx
import pytest

import relayout
from relayout.cli import main
from relayout.graph.io.destination import Destination
from tests.graph.makers import model, node, write, write_external

UNVERIFIED = "--no-verify"


def pair() -> onnx.ModelProto:
    nodes = [node("Transpose", "x", "a", perm=[1, 0]), node("Transpose", "a", "b", perm=[1, 0])]
    return model([*nodes, node("Relu", "b", "y")])


@pytest.fixture
def given(tmp_path: Path) -> Path:
    return write(pair(), tmp_path / "in.onnx")


def operators(data: bytes) -> list[str]:
    return [each.op_type for each in onnx.ModelProto.FromString(data).graph.node]


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def call(*words: str | Path, **more: object) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "relayout", *map(str, words)]
    return subprocess.run(command, capture_output=True, check=False, **more)  # type: ignore[call-overload,no-any-return]


# streams


class Streams:
    """Standard input and output as a test gives them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, data: bytes = b"") -> None:
        self.output = io.BytesIO()
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))
        monkeypatch.setattr("sys.stdout", io.TextIOWrapper(self.output, write_through=True))


@pytest.mark.parametrize("command", ["optimize", "fuse"])
@pytest.mark.parametrize("form", [[], ["--json"]])
def test_a_model_goes_through_standard_streams(
    command: str,
    form: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    streams = Streams(monkeypatch, pair().SerializeToString())
    assert main([command, "-", "-o", "-", *form]) == 0
    kept = operators(streams.output.getvalue())
    assert len(kept) == 1 if command == "fuse" else kept == ["Relu"]
    printed = capsys.readouterr().err
    assert "equal" in (json.loads(printed)["verdict"] if form else printed)


@pytest.mark.parametrize(
    "words", [["check", "-", "--max-transposes", "2"], ["inspect", "-"], ["compare", "-"]]
)
def test_a_model_can_come_through_standard_input(
    words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    streams = Streams(monkeypatch, pair().SerializeToString())
    assert main(words) == 0
    assert streams.output.getvalue()


def test_what_is_not_changed_comes_out_byte_for_byte(monkeypatch: pytest.MonkeyPatch) -> None:
    unusual = b"\x3a\x00" + model([node("Relu", "x", "y")]).SerializeToString()
    streams = Streams(monkeypatch, unusual)
    assert main(["optimize", "-", "-o", "-"]) == 0
    assert streams.output.getvalue() == unusual


def test_layouts_for_a_target_read_a_stream_once(monkeypatch: pytest.MonkeyPatch) -> None:
    Streams(monkeypatch, pair().SerializeToString())
    assert main(["inspect", "-", "--layouts", "--target", "nhwc"]) == 0


@pytest.mark.parametrize("data", [b"", b"<html>"])
def test_bad_input_through_a_stream(
    data: bytes, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    streams = Streams(monkeypatch, data)
    assert main(["optimize", "-", "-o", "-"]) == 2
    assert streams.output.getvalue() == b""
    assert len(capsys.readouterr().err.strip().splitlines()) == 1


def test_terminals_are_not_written_to(
    given: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setattr("sys.stdin", SimpleNamespace(isatty=lambda: True))
    assert main(["optimize", str(given), "-o", "-"]) == 2
    assert main(["check", "-", "--max-transposes", "1"]) == 2
    errors = capsys.readouterr().err
    assert "standard output is a terminal" in errors
    assert "standard input is a terminal" in errors


def test_data_beside_a_model_goes_into_a_stream(tmp_path: Path) -> None:
    given, stream = write_external(tmp_path / "given"), io.BytesIO()
    assert relayout.optimize(given, stream).verdict is not None
    result = onnx.ModelProto.FromString(stream.getvalue())
    assert [each.op_type for each in result.graph.node] == ["Add"]
    assert onnx.numpy_helper.to_array(result.graph.initializer[0]).tolist() == [
        [0, 1, 2],
        [3, 4, 5],
    ]


def test_more_data_than_a_message_holds_is_not_streamed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("relayout.graph.io.save.LARGEST_IN_MEMORY", 20)
    with pytest.raises(relayout.RelayoutError, match="cannot be written to a stream"):
        relayout.optimize(write_external(tmp_path / "given"), io.BytesIO(), verify=False)


# pipes and devices


def test_a_pipe_is_written_to_and_stays(given: Path, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    assert main(["optimize", str(given), "-o", str(pipe), UNVERIFIED]) == 0
    reader.join(10)
    assert operators(read[0]) == ["Relu"]
    assert pipe.is_fifo()
    assert names(tmp_path) == ["in.onnx", "pipe"]


def test_a_pipe_that_no_one_reads(
    given: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert main(["optimize", str(given), "-o", str(tmp_path / "pipe"), UNVERIFIED]) == 2
    assert "no one reads from it" in capsys.readouterr().err


def test_a_pipe_is_read(given: Path, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    # Opened for both, so that there is someone who writes when it is read.
    held = os.open(pipe, os.O_RDWR)
    os.write(held, given.read_bytes())
    threading.Timer(1.0, os.close, [held]).start()
    assert main(["check", str(pipe), "--max-transposes", "2"]) == 0


def test_process_substitution(given: Path) -> None:
    script = f"'{sys.executable}' -m relayout optimize <(cat '{given}') -o >(cat) {UNVERIFIED}"
    done = subprocess.run(
        ["bash", "-c", f"{script} 2>/dev/null >/dev/null; wait"], capture_output=True, check=False
    )
    script = f"'{sys.executable}' -m relayout optimize '{given}' -o /dev/stdout {UNVERIFIED} | cat"
    piped = subprocess.run(["bash", "-c", script], capture_output=True, check=False)
    assert done.returncode == 0
    assert operators(piped.stdout) == ["Relu"]
    assert b"wrote" in piped.stderr


def test_standard_output_by_its_name_goes_to_a_file(given: Path, tmp_path: Path) -> None:
    with (tmp_path / "out.onnx").open("wb") as file:
        command = [sys.executable, "-m", "relayout", "optimize", str(given), UNVERIFIED]
        done = subprocess.run([*command, "-o", "/dev/stdout"], stdout=file, check=False)
    assert done.returncode == 0
    assert operators((tmp_path / "out.onnx").read_bytes()) == ["Relu"]


@pytest.mark.parametrize(("device", "code"), [("/dev/null", 0), ("/dev/full", 2)])
def test_devices_are_written_to_and_stay(
    given: Path, device: str, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    before = Path(device).stat()
    assert main(["optimize", str(given), "-o", device, UNVERIFIED]) == code
    assert Path(device).stat().st_mode == before.st_mode
    assert Path(device).stat().st_ino == before.st_ino
    assert ("No space left" in capsys.readouterr().err) == (code == 2)


@pytest.mark.parametrize("kind", ["folder", "loop", "socket", "name"])
def test_what_cannot_be_written_is_refused_with_a_reason(tmp_path: Path, kind: str) -> None:
    place = tmp_path / "place"
    reasons = {
        "folder": "it is a folder",
        "loop": "symbolic links",
        "socket": "it is a socket",
        "name": "null",
    }
    if kind == "folder":
        place.mkdir()
    elif kind == "loop":
        place.symlink_to(place)
    elif kind == "socket":
        import socket  # noqa: PLC0415 - needed for this kind alone

        socket.socket(socket.AF_UNIX).bind(str(place))
    else:
        place = tmp_path / "a\0b"
    with pytest.raises(relayout.RelayoutError, match=reasons[kind]):
        Destination.of(place)


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is read-only for root")
def test_read_only_places_are_refused_before_any_work(tmp_path: Path) -> None:
    (tmp_path / "file").touch(0o444)
    folder = tmp_path / "folder"
    folder.mkdir(0o555)
    for place in (tmp_path / "file", folder / "file"):
        with pytest.raises(relayout.RelayoutError, match="read-only"):
            Destination.of(place)


def test_read_only_is_asked_of_the_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As above, where root runs the tests."""
    (tmp_path / "file").touch()
    for refused, reason in ((tmp_path, "its folder is read-only"), (tmp_path / "file", "it is ")):
        monkeypatch.setattr("os.access", lambda path, _, refused=refused: path != refused)
        with pytest.raises(relayout.RelayoutError, match=reason):
            Destination.of(tmp_path / "file")


# all or nothing


def test_a_full_disk_leaves_nothing(given: Path, tmp_path: Path) -> None:
    limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64))  # noqa: E731
    output = tmp_path / "out.onnx"
    output.write_text("older")
    done = call("optimize", given, "-o", output, UNVERIFIED, preexec_fn=limit)
    assert done.returncode == 2
    assert b"File too large" in done.stderr
    assert done.stdout == b""
    assert output.read_text() == "older"
    assert names(tmp_path) == ["in.onnx", "out.onnx"]


@pytest.mark.parametrize("form", [[], ["--json"]])
def test_a_report_that_cannot_be_printed_leaves_nothing(
    given: Path, tmp_path: Path, form: list[str]
) -> None:
    with Path("/dev/full").open("wb") as full:
        command = [sys.executable, "-m", "relayout", "optimize", str(given), UNVERIFIED, *form]
        words = ["-o", str(tmp_path / "out.onnx"), "--certificate", str(tmp_path / "proof.json")]
        done = subprocess.run([*command, *words], stdout=full, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 2
    assert done.stderr == b"relayout: the report cannot be printed: No space left on device\n"
    assert names(tmp_path) == ["in.onnx"]


def test_a_report_that_no_one_reads_is_no_failure(given: Path, tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "relayout", "optimize", str(given), UNVERIFIED]
    words = ["-o", str(tmp_path / "out.onnx")]
    done = subprocess.run([*command, *words], stdout=writer, stderr=subprocess.PIPE, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, b"")
    assert operators((tmp_path / "out.onnx").read_bytes()) == ["Relu"]


@pytest.mark.parametrize(
    ("proof", "reason"),
    [
        ("missing/proof.json", "its folder does not exist"),
        (".", "it is a folder"),
        ("in.onnx", "would overwrite the given model"),
        ("out.onnx", "the same place"),
        ("link.onnx", "the same place"),
    ],
)
def test_a_certificate_without_a_place_is_refused_before_any_work(
    given: Path, tmp_path: Path, proof: str, reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "link.onnx").symlink_to(tmp_path / "out.onnx")
    words = ["-o", str(tmp_path / "out.onnx"), "--certificate", str(tmp_path / proof)]
    assert main(["optimize", str(given), *words]) == 2
    assert reason in capsys.readouterr().err
    assert names(tmp_path) == ["in.onnx", "link.onnx"]


OVER = [
    (["optimize", "IN", "-o", "OUT", "--report", "OUT"], "the same place"),
    (["optimize", "IN", "--report", "OUT", "--certificate", "OUT"], "the same place"),
    (["optimize", "IN", "-o", "OUT", "--trace", "LINK"], "the same place"),
    (["optimize", "IN", "-o", "IN", "--report", "IN"], "the same place"),
    (["inspect", "IN", "--report", "IN"], "would overwrite the given model"),
    (["verify", "IN", "IN", "--report", "IN"], "would overwrite the given model"),
    (["fuse", "IN", "-o", "OUT", "--report", "OUT"], "the same place"),
    (["run", "IN", "--backend", "ort", "-o", "IN"], "would overwrite the given model"),
]


@pytest.mark.parametrize(("call", "reason"), OVER, ids=[" ".join(call) for call, _ in OVER])
def test_nothing_is_written_over_another_file_of_the_call(
    call: list[str], reason: str, given: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content = given.read_bytes()
    (tmp_path / "link.onnx").symlink_to(tmp_path / "out.onnx")
    places = {"IN": given, "OUT": tmp_path / "out.onnx", "LINK": tmp_path / "link.onnx"}
    assert main([str(places.get(word, word)) for word in call]) == 2
    assert reason in capsys.readouterr().err
    assert names(tmp_path) == ["in.onnx", "link.onnx"]
    assert given.read_bytes() == content


def test_a_report_is_not_written_over_a_model_from_python(given: Path) -> None:
    refused = "the report would overwrite the given model"
    with pytest.raises(relayout.RelayoutError, match=refused):
        relayout.optimize(given, report=given)


@pytest.mark.parametrize("there", [True, False])
def test_a_model_that_cannot_be_put_takes_its_certificate_back(
    given: Path, tmp_path: Path, there: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    output, proof = tmp_path / "out.onnx", tmp_path / "proof.json"
    if there:
        proof.write_text("older")
    replace = Path.replace

    def fail(self: Path, target: Path) -> Path:
        if target == output:
            assert proof.read_text().startswith("{")
            raise PermissionError(1, "Operation not permitted")
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(relayout.RelayoutError, match="Operation not permitted"):
        relayout.optimize(given, output, certificate=proof, verify=False)
    assert names(tmp_path) == ["in.onnx", *(["proof.json"] if there else [])]
    assert not there or proof.read_text() == "older"


def test_a_certificate_is_about_what_is_written(given: Path, tmp_path: Path) -> None:
    output, proof = tmp_path / "out.onnx", tmp_path / "proof.json"
    relayout.optimize(given, output, certificate=proof, verify=False)
    document = json.loads(proof.read_text())
    assert relayout.check_certificate(document, given, output) == []


def test_nothing_is_written_if_what_is_told_of_it_fails(given: Path, tmp_path: Path) -> None:
    def fail(_result: object) -> None:
        raise ArithmeticError("no")

    for function in (relayout.optimize, relayout.fuse):
        with pytest.raises(ArithmeticError):
            function(given, tmp_path / "out.onnx", verify=False, ready=fail)
    assert names(tmp_path) == ["in.onnx"]


def test_the_input_can_be_the_output_through_a_link(given: Path, tmp_path: Path) -> None:
    (tmp_path / "link.onnx").symlink_to(given)
    assert main(["optimize", str(given), "-o", str(tmp_path / "link.onnx"), UNVERIFIED]) == 0
    assert operators(given.read_bytes()) == ["Relu"]
    assert (tmp_path / "link.onnx").is_symlink()
