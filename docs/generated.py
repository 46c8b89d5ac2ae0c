"""Which parts of which documents are made from the code, and by what."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from docs.layers import ROOT, layers_text
from docs.operators import operators_text
from docs.reference import reference_text
from docs.roads import compile_text, optimize_text
from relayout.report.machine import schema

ARCHITECTURE = ROOT / "docs" / "architecture.md"
README = ROOT / "README.md"
REFERENCE = ROOT / "docs" / "api.md"
OPERATORS = ROOT / "docs" / "operators.md"
SCHEMA = ROOT / "docs" / "relayout.schema.json"

COLUMNS = "80"
"""The width of the terminal that README shows."""


def demo_text() -> str:
    """What `relayout demo` prints, without blanks at the ends of lines and empty lines in pairs."""
    command = [sys.executable, "-m", "relayout", "demo"]
    environment = {**os.environ, "COLUMNS": COLUMNS, "PYTHONPATH": str(ROOT / "src")}
    printed = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    lines = "\n".join(line.rstrip() for line in printed.stdout.splitlines())
    return re.sub(r"\n{3,}", "\n\n", lines)


def schema_text() -> str:
    """The schema of what `--json` prints."""
    return json.dumps(schema(), indent=1) + "\n"


PARTS: Mapping[Path, Mapping[str, Callable[[], str]]] = {
    ARCHITECTURE: {"layers": layers_text, "optimize": optimize_text, "compile": compile_text},
    README: {"demo": demo_text},
}
"""By document, its parts between `<!-- NAME -->` and `<!-- end of NAME -->`."""


def write_all() -> None:
    for path, parts in PARTS.items():
        text = path.read_text(encoding="utf-8")
        for name, made in parts.items():
            text = with_part(text, name, made())
        path.write_text(text, encoding="utf-8")
    REFERENCE.write_text(reference_text(), encoding="utf-8")
    OPERATORS.write_text(operators_text(), encoding="utf-8")
    SCHEMA.write_text(schema_text(), encoding="utf-8")


def part_of(text: str, name: str) -> str:
    """What stands in a document between two marks."""
    found = re.search(_pattern(name), text, re.DOTALL)
    if found is None:
        raise ValueError(f"no part <!-- {name} --> in the document")
    return found[2]


def with_part(text: str, name: str, part: str) -> str:
    part_of(text, name)
    return re.sub(_pattern(name), lambda found: found[1] + part + found[3], text, flags=re.DOTALL)


def _pattern(name: str) -> str:
    return rf"(<!-- {name} -->\n```\w*\n)(.*?)(\n```\n<!-- end of {name} -->)"
