"""One table of exit codes, for every command and every kind of failure."""

from __future__ import annotations

import signal
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from relayout.cli import COMMANDS, main
from relayout.cli.codes import BAD_INPUT, CODES, DONE, FAULT, REFUSED
from relayout.cli.signals import EndedBySignal
from relayout.errors import BadModelError, RelayoutError, VerificationError
from tests.graph.makers import model, node, value, write

CALLS: Mapping[str, Sequence[str]] = {
    "optimize": ("IN",),
    "inspect": ("IN",),
    "explain": ("IN", "NODE"),
    "compare": ("IN",),
    "fuse": ("IN",),
    "compile": ("IN", "-o", "OUT"),
    "run": ("IN",),
    "bench": ("IN",),
    "calibrate": ("IN",),
    "check": ("IN", "--max-transposes", "2"),
    "verify": ("IN", "IN"),
    "sweep": ("FOLDER", "-o", "OUT"),
    "verify_certificate": ("IN",),
    "demo": (),
    "completion": ("bash",),
}
"""The least that each command has to be given."""

NAMES = [command.__name__.rpartition(".")[2] for command in COMMANDS]

FAILURES = [
    (RelayoutError("no"), BAD_INPUT),
    (BadModelError("no"), BAD_INPUT),
    (VerificationError("no"), BAD_INPUT),
    (OSError(28, "No space left on device"), BAD_INPUT),
    (MemoryError(), BAD_INPUT),
    (ArithmeticError("no"), FAULT),
    (KeyError("no"), FAULT),
    (KeyboardInterrupt(), 128 + signal.SIGINT),
    (EndedBySignal(signal.SIGTERM), 128 + signal.SIGTERM),
    (EndedBySignal(signal.SIGHUP), 128 + signal.SIGHUP),
]


def words(name: str, given: Path) -> list[str]:
    places = {"IN": str(given), "OUT": str(given.with_name("out"))}
    return [name.replace("_", "-"), *(places.get(word, word) for word in CALLS[name])]


def test_every_command_is_tried() -> None:
    assert sorted(CALLS) == sorted(NAMES)


def test_the_codes_are_the_first_numbers() -> None:
    """Beyond them are signals, from 128 on; shells and Python take some of those between."""
    assert list(CODES) == [DONE, REFUSED, BAD_INPUT, FAULT] == [0, 1, 2, 3]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("error", "code"), FAILURES, ids=repr)
def test_a_failure_has_its_code_whatever_the_command(
    name: str,
    error: BaseException,
    code: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fail(_options: object) -> int:
        raise error

    monkeypatch.setattr(f"relayout.cli.{name}.run", fail)
    assert main(words(name, Path("in.onnx"))) == code
    printed = capsys.readouterr()
    assert printed.out == ""
    assert len(printed.err.strip().splitlines()) == 1


def test_what_a_file_names_cannot_change_the_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(_options: object) -> int:
        raise RelayoutError("no lowering of Evil\x1b[31m\nTwo \N{SNOWMAN}")

    monkeypatch.setattr("relayout.cli.demo.run", fail)
    assert main(["demo"]) == BAD_INPUT
    printed = capsys.readouterr().err
    assert printed == "relayout: no lowering of Evil\\x1b[31m\\nTwo \N{SNOWMAN}\n"


@pytest.mark.parametrize("name", [name for name in NAMES if "IN" in CALLS[name]])
@pytest.mark.parametrize("content", [None, b"", b"<html>"], ids=["missing", "empty", "text"])
def test_a_file_that_cannot_be_read(
    name: str, content: bytes | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = tmp_path / "in.onnx"
    if content is not None:
        given.write_bytes(content)
    assert main(words(name, given)) == BAD_INPUT
    assert len(capsys.readouterr().err.strip().splitlines()) == 1
    assert [path.name for path in tmp_path.iterdir()] == ([] if content is None else ["in.onnx"])


@pytest.mark.parametrize("name", NAMES)
def test_a_call_that_is_not_understood(name: str, tmp_path: Path) -> None:
    with pytest.raises(SystemExit) as stopped:
        main([*words(name, tmp_path / "in.onnx"), "--frobnicate"])
    assert stopped.value.code == BAD_INPUT


FROZEN = {
    "old opset": model([node("Relu", "x", "y")], opsets=[("", 6)], ir_version=3),
    "new opset": model([node("Relu", "x", "y")], opsets=[("", 99)]),
    "new version": model([node("Relu", "x", "y")], ir_version=99),
}


@pytest.mark.parametrize("kind", FROZEN)
@pytest.mark.parametrize("form", [[], ["--json"]])
@pytest.mark.parametrize("command", ["optimize", "fuse"])
def test_a_model_that_may_only_be_copied_is(
    kind: str, form: list[str], command: str, tmp_path: Path
) -> None:
    given, output = write(FROZEN[kind], tmp_path / "in.onnx"), tmp_path / "out.onnx"
    assert main([command, str(given), "-o", str(output), *form]) == DONE
    assert output.read_bytes() == given.read_bytes()


@pytest.mark.parametrize("kind", FROZEN)
@pytest.mark.parametrize("name", ["inspect", "compare", "check"])
def test_a_model_that_may_only_be_copied_is_not_looked_into(
    kind: str, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words(name, write(FROZEN[kind], tmp_path / "in.onnx"))) == BAD_INPUT
    assert "may only be copied" in capsys.readouterr().err


TRANSPOSED = [
    node("Transpose", "x", "a", perm=[1, 0]),
    node("Transpose", "a", "b", perm=[1, 0]),
    node("Relu", "b", "y"),
]


def test_a_verdict_of_no_writes_nothing(tmp_path: Path) -> None:
    """Of a comparison that has no memory nothing is known, and an interface was to change."""
    given = write(model(TRANSPOSED, inputs=[value("x", [2, 3])]), tmp_path / "in.onnx")
    proof = str(tmp_path / "proof.json")
    words = [
        "-o",
        str(tmp_path / "out.onnx"),
        "--certificate",
        proof,
        "--memory",
        "0.01",
        "--free-inputs",
    ]
    assert main(["optimize", str(given), *words]) == REFUSED
    assert main(["check", str(given), "--max-transposes", "1"]) == REFUSED
    assert [path.name for path in tmp_path.iterdir()] == ["in.onnx"]


def test_help_lists_the_codes(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["--help"])
    assert stopped.value.code == DONE
    printed = " ".join(capsys.readouterr().out.split())
    for code, meaning in CODES.items():
        assert f"{code} {meaning}" in printed
