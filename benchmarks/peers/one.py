"""All figures of one model: python -m benchmarks.peers.one PATH NAME SECONDS THREADS

Prints a record as JSON, so that a model that brings down a runtime brings down this process only.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.peers.shares import moving_share
from benchmarks.peers.tools import TOOLS, Spent, run
from benchmarks.zoo import Entry, entries
from relayout.api import count
from relayout.errors import RelayoutError
from relayout.timing.contest import GIVEN, contest
from relayout.timing.engines import ENGINES
from relayout.timing.feeds import feeds_of
from relayout.verify.verdict import NumericOptions


def options_of(row: Mapping[str, Any]) -> NumericOptions:
    """What an index says of the inputs of a model."""
    shapes = {name: tuple(shape) for name, (_, shape) in row.get("feeds", {}).items()}
    ranges = {name: tuple(each) for name, each in row.get("integer_ranges", {}).items()}
    return NumericOptions(shapes=shapes, integer_ranges=ranges)


def record_of(entry: Entry, scratch: Path, seconds: float, threads: int) -> dict[str, Any]:
    """What every tool makes of a model, and how long that takes in every runtime."""
    files = {GIVEN: entry.file}
    spent: dict[str, Spent] = {}
    for tool in (tool for tool in TOOLS if tool.is_installed):
        output = scratch / f"{tool.name}.onnx"
        spent[tool.name] = run(tool, entry, output)
        if output.exists():
            files[tool.name] = output
    options = options_of(entry.row)
    return {
        "figures": {name: _figures(file) for name, file in files.items()},
        "tools": {name: asdict(each) for name, each in spent.items()},
        "shares": _shares(files, options, scratch),
        "runtimes": {
            engine.name: _times(files, engine.name, options, seconds, threads)
            for engine in (ENGINES[name] for name in ENGINES)
            if engine.is_installed
        },
    }


def _figures(file: Path) -> dict[str, int] | str:
    try:
        found = count(file)
    except RelayoutError as error:
        return str(error)[:200]
    return {"transposes": found.transposes, "bytes": found.bytes_moved, "nodes": found.nodes}


def _shares(files: Mapping[str, Path], options: NumericOptions, scratch: Path) -> dict[str, Any]:
    """Milliseconds in Transposes and Reorders, and in all operators, by ONNX Runtime's profile."""
    try:
        feeds = feeds_of(files[GIVEN], options)
    except RelayoutError as error:
        return {"refusal": str(error)[:200]}
    found: dict[str, Any] = {}
    for name, file in files.items():
        try:
            found[name] = moving_share(file, feeds, scratch)
        except Exception as error:  # noqa: BLE001 - ONNX Runtime raises exceptions of any class
            found[name] = str(error)[:200]
    return found


def _times(
    files: Mapping[str, Path], engine: str, options: NumericOptions, seconds: float, threads: int
) -> dict[str, Any]:
    """Times in one runtime; files that are the same to the byte are run once."""
    same: dict[bytes, str] = {}
    alike = {name: same.setdefault(file.read_bytes(), name) for name, file in files.items()}
    different = {name: files[name] for name in dict.fromkeys(alike.values())}
    try:
        held = contest(different, ENGINES[engine], options, threads=threads, seconds=seconds)
    except RelayoutError as error:
        return {"refusal": str(error)[:200]}
    entrants = {entrant.name: asdict(entrant) for entrant in held.entrants}
    return {name: {**entrants[first], "name": name} for name, first in alike.items()}


def main() -> None:
    path, name, seconds, threads = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        (entry,) = entries(Path(path), [name], scratch, keep=True)
        print(json.dumps(record_of(entry, scratch, float(seconds), int(threads))))


if __name__ == "__main__":
    main()
