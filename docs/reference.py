"""The reference of what users call, made from signatures and docstrings."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from enum import Enum
from itertools import pairwise
from typing import Any

import relayout

HEADING = """# Reference

Everything that `relayout` exports, made from the code by `make docs`; do not edit it here.
What it is for and how it fits together: [README](../README.md), [architecture](architecture.md).
"""


def reference_text() -> str:
    return "\n".join((HEADING, *(line for name in _names() for line in _entry(name))))


def _names() -> list[str]:
    """Functions first, which begin with a small letter."""
    return sorted(relayout.__all__, key=lambda name: (name[0].isupper(), name))


def _entry(name: str) -> Iterator[str]:
    value = getattr(relayout, name)
    yield f"## `{name}`\n"
    if not inspect.isclass(value):
        yield f"```python\n{_signature(name, value)}\n```\n"
    elif issubclass(value, Exception):
        yield f"An exception; its base is `{value.__mro__[1].__name__}`.\n"
    if text := _own_docstring(value):
        yield f"{text}\n"
    if inspect.isclass(value) and not issubclass(value, Exception):
        yield from _members(value)


def _signature(name: str, function: Any) -> str:
    """A function with a line for each parameter; annotations stand as they are written."""
    signature = inspect.signature(function)
    kinds = inspect.Parameter
    lines: list[str] = []
    for parameter in signature.parameters.values():
        if parameter.kind is kinds.KEYWORD_ONLY and "    *," not in lines:
            lines.append("    *,")
        lines.append(f"    {_parameter(parameter)},")
    return "\n".join((f"{name}(", *lines, f") -> {signature.return_annotation}"))


def _parameter(parameter: inspect.Parameter) -> str:
    text = f"{parameter.name}: {parameter.annotation}"
    return text if parameter.default is parameter.empty else f"{text} = {_default(parameter)}"


def _default(parameter: inspect.Parameter) -> str:
    """A default as a user would write it: values with names by their names."""
    value = parameter.default
    if value is None or isinstance(value, str | int | float | tuple):
        return repr(value)
    name = getattr(value, "value", None) or getattr(value, "name", None)
    return repr(name) if isinstance(name, str) else "..."


def _members(kind: type) -> Iterator[str]:
    """The fields and what else a class offers, one line each."""
    if issubclass(kind, Enum):
        yield from (f"- `{member.name}`: {member.value!r}" for member in kind)
    texts = _field_docstrings(kind)
    for name, annotation in inspect.get_annotations(kind).items():
        if not name.startswith("_"):
            yield _line(f"{name}: {annotation}", texts.get(name, ""))
    for name, member in vars(kind).items():
        if name.startswith("_") or not (isinstance(member, property) or inspect.isroutine(member)):
            continue
        call = "" if isinstance(member, property) else "()"
        yield _line(f"{name}{call}", _own_docstring(member))
    yield ""


def _line(code: str, text: str) -> str:
    first = text.partition("\n")[0]
    return f"- `{code}`: {first}" if first else f"- `{code}`"


def _field_docstrings(kind: type) -> dict[str, str]:
    """The text that stands below each field of a class."""
    body = ast.parse(inspect.getsource(kind)).body[0]
    statements = body.body if isinstance(body, ast.ClassDef) else []
    return {
        ast.unparse(field.target): inspect.cleandoc(text.value.value)
        for field, text in pairwise(statements)
        if isinstance(field, ast.AnnAssign)
        and isinstance(text, ast.Expr)
        and isinstance(text.value, ast.Constant)
        and isinstance(text.value.value, str)
    }


def _own_docstring(value: Any) -> str:
    """What was written for it, not what dataclass or a base class gives."""
    text = inspect.cleandoc(value.__doc__ or "")
    is_made = inspect.isclass(value) and text.startswith(f"{value.__name__}(")
    return "" if is_made else text
