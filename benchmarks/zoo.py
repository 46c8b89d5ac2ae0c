"""Optimise every model of a zoo: python -m benchmarks.zoo PATH [--only NAME ...] [-- ARGS ...]

PATH holds `*.onnx` files, or an `index.json` with packed models and the `slim.py` that unpacks
them. ARGS go to `relayout optimize`. One line a model, one for each quantised model with a twin in
floats, totals last; the exit code is 0 if all models were read, optimised, verified and written.
`proved` counts the models for which no choice among the variants offered costs less, `twins_behind`
the quantised models that keep more Transposes than their twin. Among ARGS `--minimize count` lets
products between quantisers become Einsums like those of floats, and `--no-einsum` with it keeps
both products, those between quantisers such that runtimes use bytes.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

NUMBERS = re.compile("(_(quant|int8|ptq|float32|fp32|tfnotr))+$")

PORTABLE = ("given", "ort_basic", "ort_ext", "onnxsim", "onnxslim", "onnxoptimizer", "onnxscript")


Counts: TypeAlias = tuple[int, int]
"""The Transposes of a model before and after."""


@dataclass(frozen=True)
class Entry:
    name: str
    file: Path
    row: dict[str, Any]

    def arguments(self) -> list[str]:
        """The shapes an index gives to the inputs."""
        feeds = self.row.get("feeds", {})
        return [
            argument
            for name, (_, shape) in feeds.items()
            for argument in ("--shape", f"{name}={','.join(map(str, shape))}")
        ]


def _rows(folder: Path) -> dict[str, dict[str, Any]]:
    """What an index says of each model."""
    index = folder / "index.json"
    return {row["name"]: row for row in json.loads(index.read_text())} if index.exists() else {}


def entries_named(folder: Path, only: list[str]) -> list[str]:
    """The names of the models of a folder, or those of them that are asked for."""
    names = sorted(_rows(folder)) or sorted(file.stem for file in folder.glob("*.onnx"))
    return [name for name in names if not only or name in only]


def entries(folder: Path, only: list[str], scratch: Path, *, keep: bool = False) -> Iterator[Entry]:
    """The models of a folder; what had to be unpacked is removed after use unless it is kept."""
    by_name = _rows(folder)
    for name in entries_named(folder, only):
        file = folder / f"{name}.onnx"
        if not file.exists():
            file = scratch / f"{name}.onnx"
            unpack = [sys.executable, str(folder / "slim.py"), "unpack", str(scratch), name]
            subprocess.run(unpack, check=True, capture_output=True)
        yield Entry(name, file, by_name.get(name, {}))
        if file.parent == scratch and not keep:
            file.unlink()


def optimise(entry: Entry, rest: list[str], scratch: Path) -> dict[str, Any]:
    """What the command line reports about one model."""
    output = scratch / "out.onnx"
    command = [sys.executable, "-m", "relayout", "optimize", str(entry.file), "-o", str(output)]
    start = time.perf_counter()
    done = subprocess.run(
        [*command, "--json", *entry.arguments(), *rest], capture_output=True, text=True, check=False
    )
    seconds = time.perf_counter() - start
    written = output.exists()
    output.unlink(missing_ok=True)
    record = json.loads(done.stdout) if done.stdout else {"verdict": done.stderr.strip()[-300:]}
    return {**record, "code": done.returncode, "seconds": seconds, "written": written}


def best_peer(row: dict[str, Any]) -> int:
    """The fewest Transposes that any tool with portable output leaves, if the index has it."""
    left = row.get("transposes_left") or {}
    return min((left[tool] for tool in PORTABLE if left.get(tool) is not None), default=1 << 30)


def network(name: str) -> str:
    """What twins have in common: the name without its origin and its kind of numbers."""
    return NUMBERS.sub("", name.rpartition("__")[2])


def twins(counts: dict[str, Counts], quantised: set[str]) -> Iterator[tuple[str, str]]:
    """Each quantised model with the same network in floats, given with about as many Transposes."""
    for name, (before, _) in counts.items():
        others = [each for each in counts if each not in quantised]
        same = [each for each in others if network(each) == network(name)]
        if name in quantised and same:
            yield name, min(same, key=lambda each: abs(counts[each][0] - before))


def reported_twins(counts: dict[str, Counts], quantised: set[str]) -> Counter[str]:
    """Print what each pair of twins keeps."""
    total: Counter[str] = Counter()
    for name, twin in twins(counts, quantised):
        left, in_floats = counts[name][1], counts[twin][1]
        total.update(twins=1, twins_behind=left > in_floats)
        print(f"{name}: {left} left, in floats {in_floats} ({twin})")
    return total


def moved(record: dict[str, Any], when: str) -> int:
    return int(record.get(when, {}).get("bytes_moved", 0))


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("path", type=Path)
    parser.add_argument("--only", nargs="*", default=[])
    own, rest = sys.argv[1:], []
    if "--" in own:
        own, rest = own[: own.index("--")], own[own.index("--") + 1 :]
    options = parser.parse_args(own)
    total: Counter[str] = Counter()
    counts: dict[str, Counts] = {}
    quantised: set[str] = set()
    with tempfile.TemporaryDirectory() as scratch:
        for entry in entries(options.path, options.only, Path(scratch)):
            record = optimise(entry, rest, Path(scratch))
            before = record.get("before", {}).get("transposes", 0)
            after = record.get("after", {}).get("transposes", 0)
            counts[entry.name] = before, after
            quantised.update([entry.name] if entry.row.get("precision") == "int8" else [])
            good = record["code"] == 0 and record["written"]
            total.update(models=1, good=good, before=before, after=after)
            total.update(changed=bool(record.get("changed")), exact="exact" in record["verdict"])
            best = best_peer(entry.row)
            total.update(peers=min(best, before), behind=after > best)
            total.update(more_bytes=moved(record, "after") > moved(record, "before"))
            total.update(more_transposes=after > before, proved=record.get("optimal", False))
            notices = "; ".join(record.get("notices", []))
            print(
                f"{entry.name}: {before} -> {after}{f', BEHIND {best}' if after > best else ''}, "
                f"{record['verdict']}, "
                f"{record['seconds']:.1f} s{'; ' + notices if notices else ''}",
                flush=True,
            )
    total.update(reported_twins(counts, quantised))
    print(dict(total))
    return 0 if total["good"] == total["models"] else 1


if __name__ == "__main__":
    sys.exit(main())
