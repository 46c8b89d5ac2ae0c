"""The layers of the package as text, from the contracts that lint-imports enforces."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src"
INDENT = "  "


def layers_text() -> str:
    """All contracts, each as its rooms from the highest to the lowest."""
    return "\n\n".join("\n".join(_lines(contract)) for contract in contracts())


def contracts() -> list[Mapping[str, Any]]:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    found: list[Mapping[str, Any]] = settings["tool"]["importlinter"]["contracts"]
    return found


def _lines(contract: Mapping[str, Any]) -> Iterator[str]:
    yield contract["name"]
    if contract["type"] == "layers":
        yield from _layers(contract["layers"])
        return
    sources = ", ".join(map(_short, contract["source_modules"]))
    forbidden = ", ".join(map(_short, contract["forbidden_modules"]))
    yield f"{INDENT}{sources} imports none of {forbidden}"


def _layers(layers: list[str]) -> Iterator[str]:
    """A line for each room; those of one layer, which do not know each other, are bracketed."""
    rows = [[module.strip() for module in layer.split("|")] for layer in layers]
    parent = _parent(rows)
    width = max(len(module) for row in rows for module in row) - len(parent) + 1
    for row in rows:
        for mark, module in zip(_brackets(len(row)), row, strict=True):
            name = module.removeprefix(f"{parent}.")
            yield f"{INDENT}{mark} {name:{width}}{purpose(module)}".rstrip()


def _brackets(count: int) -> str:
    return " " if count == 1 else f"┌{'│' * (count - 2)}└"


def _parent(rows: list[list[str]]) -> str:
    """What the names of all rooms begin with."""
    parents = {module.rpartition(".")[0] for row in rows for module in row}
    return min(parents, key=len)


def _short(module: str) -> str:
    return module.removeprefix("relayout.")


def purpose(module: str) -> str:
    """The first line of the docstring of a module or a package."""
    path = SOURCE.joinpath(*module.split("."))
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    text = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
    return text.partition("\n")[0].removesuffix(".")
