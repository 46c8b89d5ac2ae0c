"""What --json prints: a version, the shape that the schema states, and errors too."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import onnx
import pytest

from docs.generated import SCHEMA, schema_text
from relayout.cli import COMMANDS, command_parser, main
from relayout.cli.demo_model import network
from relayout.report.machine import answer, schema

NAMES: dict[str, Any] = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "null": type(None),
    "array": list,
    "object": dict,
}


def fits(value: Any, wanted: dict[str, Any]) -> bool:
    """Whether a value is what a schema states, of the words that ours uses."""
    if "$ref" in wanted:
        return fits(value, schema()["$defs"][wanted["$ref"].rpartition("/")[2]])
    if "anyOf" in wanted:
        return any(fits(value, each) for each in wanted["anyOf"])
    if "const" in wanted and value != wanted["const"]:
        return False
    kinds = wanted.get("type", list(NAMES))
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if not any(isinstance(value, NAMES[kind]) and _is_no_flag(value, kind) for kind in kinds):
        return False
    if isinstance(value, list):
        return all(fits(each, wanted.get("items", {})) for each in value)
    if not isinstance(value, dict):
        return True
    inner = wanted.get("properties", {})
    rest = wanted.get("additionalProperties", {})
    is_complete = all(name in value for name in wanted.get("required", ()))
    return is_complete and all(fits(each, inner.get(name, rest)) for name, each in value.items())


def _is_no_flag(value: Any, kind: str) -> bool:
    return kind not in ("integer", "number") or not isinstance(value, bool)


@pytest.fixture
def model(tmp_path: Path) -> str:
    path = tmp_path / "in.onnx"
    onnx.save(network(), path)
    return str(path)


def printed(capsys: pytest.CaptureFixture[str], arguments: list[str], code: int = 0) -> Any:
    assert main([*arguments, "--json"]) == code
    return json.loads(capsys.readouterr().out)


ASKED = {
    "optimize": ["optimize", "IN", "--no-verify", "--suggest"],
    "inspect": ["inspect", "IN"],
    "inspect layouts": ["inspect", "IN", "--layouts"],
    "explain": ["explain", "IN", "transpose_0"],
    "compare": ["compare", "IN", "--no-verify"],
    "compare regions": ["compare", "IN", "--no-verify", "--regions", "--target", "nhwc"],
    "fuse": ["fuse", "IN", "--no-verify"],
    "fuse dump": ["fuse", "IN", "--dump"],
    "fuse explain": ["fuse", "IN", "--explain", "conv_1"],
    "check": ["check", "IN", "--max-transposes", "100"],
    "check profile": ["check", "IN", "--profile", "tidl"],
    "verify": ["verify", "IN", "IN"],
    "demo": ["demo"],
}


@pytest.mark.parametrize("asked", ASKED)
def test_answers_are_what_the_schema_states(
    asked: str, model: str, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = [model if each == "IN" else each for each in ASKED[asked]]
    found = printed(capsys, arguments)
    assert found["version"] == 1
    assert found["command"] == asked.partition(" ")[0]
    assert fits(found, schema()["$defs"][found["command"]])
    assert fits(found, schema())
    assert not fits({**found, "version": 0}, schema())


def test_a_certificate_is_answered_in_the_same_form(
    model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    proof = str(tmp_path / "c.json")
    assert main(["optimize", model, "--no-verify", "--certificate", proof]) == 0
    capsys.readouterr()
    assert fits(printed(capsys, ["verify-certificate", proof]), schema())


def test_errors_are_answered_too(capsys: pytest.CaptureFixture[str]) -> None:
    found = printed(capsys, ["inspect", "missing.onnx"], 2)
    assert fits(found, schema()["$defs"]["error"])
    assert found["error"]["code"] == 2
    assert "missing.onnx" in found["error"]["message"]


def test_calls_that_are_not_understood_are_answered_too(
    model: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(["optimize", model, "--json", "--minimize", "beauty"])
    found = json.loads(capsys.readouterr().out)
    assert fits(found, schema()["$defs"]["error"])
    assert "unknown objective 'beauty'" in found["error"]["message"]


def test_shapes_are_lists(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = printed(capsys, ["inspect", model])
    assert found["inputs"][0]["shape"] == ["N", 16, 16, 3]
    unknown = answer("inspect", {"shape": "?", "ports": [{"shape": "[]"}, {"shape": "[?,2]"}]})
    assert unknown["shape"] is None
    assert [port["shape"] for port in unknown["ports"]] == [[], [None, 2]]


def test_the_schema_in_the_documents_is_up_to_date() -> None:
    assert SCHEMA.read_text(encoding="utf-8") == schema_text()


def test_every_command_has_a_schema_a_description_and_an_example() -> None:
    parser = command_parser()
    (commands,) = (each for each in parser._actions if each.dest == "name")
    choices: dict[str, Any] = dict(commands.choices or {})
    assert len(choices) == len(COMMANDS)
    assert set(choices) - {"completion"} == set(schema()["$defs"]) - {"error"}
    for name, each in choices.items():
        assert each.description
        example = each.epilog.removeprefix("example: ")
        assert example.startswith(f"relayout {name}")
        assert parser.parse_args(example.split()[1:]).name == name
