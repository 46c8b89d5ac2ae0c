"""Answers for machines: what `--json` prints, with its version, and the schema of all of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from relayout.report.comparison import ComparisonRecord
from relayout.report.fit import FitRecord
from relayout.report.fusion import FusionRecord, NodeRecord
from relayout.report.layouts import LayoutsRecord
from relayout.report.node import ExplainedNode
from relayout.report.records import ModelRecord, RunRecord

FORMAT = 1
"""The version of all answers; a change that readers would notice makes it another number."""

Schema = dict[str, Any]

LENGTHS: Schema = {"type": ["array", "null"], "items": {"type": ["integer", "string", "null"]}}
"""A shape: numbers, names of lengths, null for a length that is unknown; null for no known rank."""
PLAIN = {str: "string", int: "integer", float: "number", bool: "boolean", NoneType: "null"}


def answer(command: str, record: Mapping[str, Any]) -> dict[str, Any]:
    """What a command prints with `--json`."""
    return {"version": FORMAT, "command": command, **_with_lists(dict(record))}


def failure(command: str | None, code: int, message: str) -> dict[str, Any]:
    """What is printed with `--json` where a command ends with an error."""
    return {"version": FORMAT, "command": command, "error": {"code": code, "message": message}}


def _with_lists(value: Any) -> Any:
    """The same with shapes as lists."""
    if isinstance(value, dict):
        return {
            name: _lengths(each) if name == "shape" and isinstance(each, str) else _with_lists(each)
            for name, each in value.items()
        }
    return [_with_lists(each) for each in value] if isinstance(value, list | tuple) else value


def _lengths(shape: str) -> list[int | str | None] | None:
    """A shape as a list, of the text '[N,3,?]'."""
    if not shape.startswith("["):
        return None
    lengths = [length for length in shape[1:-1].split(",") if length]
    return [int(n) if n.isdecimal() else None if n == "?" else n for n in lengths]


def schema() -> Schema:
    """The schema of all answers, by the command that gives them."""
    answers = {name: _answer(name, kinds) for name, kinds in _answers().items()}
    error = {"code": {"type": "integer"}, "message": {"type": "string"}}
    failed = _object(
        {
            "version": {"const": FORMAT},
            "command": {"type": ["string", "null"]},
            "error": _object(error),
        }
    )
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "What relayout prints with --json",
        "anyOf": [{"$ref": f"#/$defs/{name}"} for name in (*answers, "error")],
        "$defs": {**answers, "error": failed},
    }


def _answers() -> dict[str, list[Schema]]:
    texts = {"type": "array", "items": {"type": "string"}}
    flag = {"type": "boolean"}
    count = {"type": "integer"}
    anything: Schema = {}
    swept: dict[str, Schema] = {name: {"type": "string"} for name in ("name", "status", "error")}
    swept |= {"code": count, "seconds": {"type": "number"}}
    model = {"path": {"type": "string"}, "transposes": count, "ok": flag}
    return {
        "optimize": [_of(RunRecord)],
        "demo": [_of(RunRecord)],
        "inspect": [_of(ModelRecord), _of(LayoutsRecord)],
        "compare": [_of(ComparisonRecord)],
        "fuse": [
            _of(FusionRecord),
            _object({"dump": texts}),
            _object({"nodes": {"type": "array", "items": _of(NodeRecord)}}),
        ],
        "explain": [_object({"nodes": {"type": "array", "items": _of(ExplainedNode)}})],
        "check": [
            _object(
                {
                    "models": {"type": "array", "items": _object(model)},
                    "max_transposes": count,
                    "ok": flag,
                    "verdict": {"type": "string"},
                }
            ),
            _object(
                {
                    "models": {"type": "array", "items": _of(FitRecord)},
                    "profile": {"type": "string"},
                    "ok": flag,
                    "verdict": {"type": "string"},
                }
            ),
        ],
        "verify": [
            _object({"equal": flag, "outputs": {"type": "array"}, "verdict": {"type": "object"}})
        ],
        "sweep": [_object({"models": {"type": "array", "items": _object(swept)}, "files": texts})],
        "verify-certificate": [_object({"ok": flag, "faults": texts})],
        "compile": [_object({"files": texts, "verdict": {"type": "string"}, "verified": flag})],
        "run": [_object({"outputs": {"type": "array", "items": {"type": "object"}}})],
        "bench": [_object({"times": {"type": "array", "items": {"type": "object"}}})],
        "calibrate": [_object({"device": {"type": "string"}, "kernels": anything})],
    }


def _answer(command: str, kinds: list[Schema]) -> Schema:
    head = {"version": {"const": FORMAT}, "command": {"const": command}}
    told = [
        {
            **kind,
            "properties": {**head, **kind["properties"]},
            "required": [*head, *kind["required"]],
        }
        for kind in kinds
    ]
    return told[0] if len(told) == 1 else {"anyOf": told}


def _object(properties: Mapping[str, Schema]) -> Schema:
    return {"type": "object", "properties": dict(properties), "required": list(properties)}


def _of(kind: Any) -> Schema:
    """The schema of values of a type."""
    if kind is Any:
        return {}
    if kind in PLAIN:
        return {"type": PLAIN[kind]}
    if is_dataclass(kind) and isinstance(kind, type):
        return _of_record(kind)
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return {"anyOf": [_of(each) for each in inner]}
    if origin is tuple:
        same = {_of_text(each): each for each in inner if each is not ...}
        items = [_of(each) for each in same.values()]
        return {"type": "array", "items": items[0] if len(items) == 1 else {"anyOf": items}}
    if origin is dict:
        return {"type": "object", "additionalProperties": _of(inner[1])}
    raise TypeError(f"no schema for {kind}")


def _of_text(kind: Any) -> str:
    return str(kind)


def _of_record(kind: type) -> Schema:
    hints = get_type_hints(kind)
    listed = {field.name: field for field in fields(kind)}
    properties = {name: LENGTHS if name == "shape" else _of(hints[name]) for name in listed}
    needed = [
        name
        for name, field in listed.items()
        if field.default is MISSING and field.default_factory is MISSING
    ]
    return {"type": "object", "properties": properties, "required": needed}
