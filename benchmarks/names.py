"""Compare the names of nodes before and after: python -m benchmarks.names PATH [--only NAME ...]

PATH is as for `benchmarks.zoo`. Every model is optimised without verification, for each objective
and target asked for. One line a model: how many nodes are still called as they were, how many are
new, and below it each name that is not as it should be. The exit code is 1 if there is one.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import onnx

import relayout
from benchmarks.zoo import entries
from tests.suites.naming import node_names, violations


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", type=Path)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--target", default="onnx")
    parser.add_argument("--minimize", default="bytes")
    arguments = parser.parse_args()
    wrong = 0
    with tempfile.TemporaryDirectory() as scratch:
        for entry in entries(arguments.path, arguments.only, Path(scratch)):
            wrong += _compared(entry.name, entry.file, arguments.target, arguments.minimize)
    print(f"violations {wrong}")
    return 1 if wrong else 0


def _compared(name: str, file: Path, target: str, minimize: str) -> int:
    """Print what one model keeps; how many names are wrong."""
    given = onnx.load(file, load_external_data=False)
    result = relayout.optimize(file, target=target, minimize=minimize, verify=False).model
    before, after = node_names(given), node_names(result)
    found = violations(given, result)
    kept = sum((before & after).values())
    print(f"{name}: {kept} of {before.total()} names kept, {(after - before).total()} new")
    for line in found:
        print(f"  {line}")
    sys.stdout.flush()
    return len(found)


if __name__ == "__main__":
    sys.exit(main())
