"""What other tools make of models, verified.

python -m benchmarks.peers_verified [PATH ...] [--suite] [--tools NAME ...] [--every N]

PATH is a zoo as for `benchmarks.zoo`; `--suite` takes the models of onnx's backend tests, too, of
which every `N`th may be asked for. Each tool that is installed makes a model of each, and what it
made is proved to be the same function, or else compared by numbers: on the data of the test, or as
`relayout verify` does. Prints a table, and what is refuted, does not run or has another interface.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.peers_verified.tools import ALL, INSTALLED
from benchmarks.peers_verified.verdicts import (
    FAILED,
    IDENTICAL,
    INTERFACE,
    LEDGER,
    NOT_RUN,
    REFUTED,
    SAME,
    TESTED,
    UNKNOWN,
)
from benchmarks.zoo import entries
from tests.suites.backend import case_names

ENDED = "ended the process"
KINDS = (IDENTICAL, LEDGER, TESTED, REFUTED, NOT_RUN, INTERFACE, UNKNOWN, SAME, FAILED, ENDED)
SHOWN = (REFUTED, NOT_RUN)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("paths", type=Path, nargs="*")
    parser.add_argument("--suite", action="store_true")
    parser.add_argument("--tools", nargs="+", default=list(INSTALLED))
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--report", type=Path, default=Path("peers.jsonl"))
    given = parser.parse_args()
    print("not installed:", ", ".join(name for name in ALL if name not in INSTALLED) or "none")
    with tempfile.TemporaryDirectory() as folder, given.report.open("a") as report:
        models = [str(e.file) for path in given.paths for e in entries(path, [], Path(folder))]
        models += [f"suite/{kind}/{name}" for kind, name in case_names()] if given.suite else []
        for tool in given.tools:
            counts: Counter[str] = Counter()
            for record in _records(tool, models[:: given.every], Path(folder)):
                counts[record["kind"]] += 1
                report.write(json.dumps({"tool": tool, **record}) + "\n")
                report.flush()
                if record["kind"] in SHOWN:
                    print(f"{tool} {record['model']}: {record['kind']}, {record['reason']}")
            print(f"{tool}:", ", ".join(f"{counts[k]} {k}" for k in KINDS if counts[k]), flush=True)


def _records(tool: str, models: Sequence[str], folder: Path) -> Iterator[dict[str, str]]:
    """A worker that ends is followed by another, from the next model on."""
    left = list(models)
    while left:
        command = [sys.executable, "-m", "benchmarks.peers_verified.worker", tool, str(folder)]
        with subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        ) as worker:
            assert worker.stdin is not None
            worker.stdin.write("\n".join(left))
            worker.stdin.close()
            doing = left[0]
            for line in worker.stdout or ():
                record = json.loads(line) if line.startswith("{") else {}
                if "doing" in record:
                    doing = record["doing"]
                elif "model" in record:
                    yield record
        if worker.returncode == 0:
            return
        yield {"model": doing, "kind": ENDED, "reason": f"exit code {worker.returncode}"}
        left = left[left.index(doing) + 1 :]


if __name__ == "__main__":
    main()
