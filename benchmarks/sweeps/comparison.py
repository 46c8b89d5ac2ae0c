"""What two sweeps of the same models left behind, but for times and for the places they lie in."""

from __future__ import annotations

import json
from collections.abc import Sequence
from hashlib import file_digest
from pathlib import Path
from typing import Any

from pyarrow import parquet

from relayout.sweep.job import RECORD
from relayout.sweep.table import TABLE

SECONDS = "seconds"


def differences(one: Path, other: Path) -> list[str]:
    """What is not equal: rows of the tables, records, the bytes of models."""
    found = [] if _table(one).equals(_table(other)) else ["the tables"]
    names = sorted({path.name for out in (one, other) for path in (out / "models").iterdir()})
    return found + [name for name in names if _left(one, name) != _left(other, name)]


def told(found: Sequence[str]) -> str:
    return f"differ: {', '.join(found)}" if found else "equal tables, records and bytes"


def _table(out: Path) -> Any:
    return parquet.read_table(out / TABLE).drop_columns([SECONDS])


def _left(out: Path, name: str) -> dict[str, Any]:
    """By file: its hash, or the record without times; a report tells times, so only that it is."""
    folder, left = out / "models" / name, dict[str, Any]()
    for path in sorted(folder.iterdir()) if folder.exists() else ():
        if path.name == RECORD:
            record = json.loads(path.read_text().replace(str(out), ""))
            left[path.name] = _without_times(record)
        elif path.suffix == ".html":
            left[path.name] = None
        else:
            with path.open("rb") as file:
                left[path.name] = file_digest(file, "sha256").hexdigest()
    return left


def _without_times(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_times(each) for key, each in value.items() if key != SECONDS}
    return [_without_times(each) for each in value] if isinstance(value, list) else value
