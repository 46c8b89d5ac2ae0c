"""relayout beside other tools: python -m benchmarks.peers PATH [--only NAME ...] [--seconds 6]

PATH is as for `benchmarks.zoo`. For each model, in one run: Transposes and bytes, time in ONNX
Runtime and in OpenVINO (one thread, on its core; with `--threads N` also N threads, by the clock),
the share of Transposes and Reorders in ONNX Runtime's profile, and each tool's own CPU time and
memory; of the given model and of what relayout, onnxsim, onnxslim and ONNX Runtime make of it.

Records are kept in `--results`, model by model: a run that was stopped goes on where it was, and
`--again` measures anew what is there and says what got worse. `benchmarks/RESULTS.md` and its plots
are written at the end, or by `--report` alone.
"""

from __future__ import annotations

import argparse
import datetime
import json
import platform
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.peers.records import Kept, ratio_of
from benchmarks.peers.report import write
from benchmarks.peers.tools import TOOLS
from benchmarks.zoo import entries_named
from relayout.timing.engines import ENGINES

HERE = Path(__file__).parent
RESULTS = HERE / "results.json"
PAGE = HERE.parent / "RESULTS.md"


def versions() -> dict[str, str]:
    """Of all that takes part."""
    tools = {tool.package: tool.version for tool in TOOLS if tool.is_installed}
    engines = {name: ENGINES[name].version for name in ENGINES if ENGINES[name].is_installed}
    return {**tools, **engines, "Python": platform.python_version(), "on": platform.machine()}


def measured(path: Path, name: str, options: argparse.Namespace) -> dict[str, Any] | None:
    """The record of a model, made in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.peers.one", str(path), name]
    limits = [str(options.seconds), str(options.threads)]
    done = subprocess.run([*command, *limits], capture_output=True, text=True, check=False)
    if done.returncode != 0 or not done.stdout:
        said = done.stderr.strip().splitlines()[-1:] or ["no message"]
        print(f"{name}: failed with {done.returncode}: {said[0][:200]}", flush=True)
        return None
    record: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return {**record, "date": _today()}


def _today() -> str:
    return datetime.datetime.now(tz=datetime.UTC).date().isoformat()


def line(name: str, record: dict[str, Any], seconds: float) -> str:
    shown = [
        f"{engine} {tool} {ratio:.3f}"
        for engine in record["runtimes"]
        for tool in record["figures"]
        if (ratio := ratio_of(record, engine, tool)) is not None and tool.startswith("relayout")
    ]
    return f"{name}: {', '.join(shown)}; {seconds:.0f} s"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", type=Path, nargs="?")
    parser.add_argument("--only", nargs="+", default=[], help="names of models")
    parser.add_argument("--seconds", type=float, default=6.0, help="of turns, a model and runtime")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--again", action="store_true", help="measure anew what is kept")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--report", type=Path, default=PAGE, help="the page that is written")
    options = parser.parse_args()
    kept = Kept.of(options.results)
    if options.path is not None:
        kept.versions, kept.date = versions(), _today()
        for name in entries_named(options.path, options.only):
            if name in kept.models and not options.again:
                continue
            since = time.perf_counter()
            record = measured(options.path, name, options)
            if record is not None:
                worse = kept.put(name, record)
                print(
                    line(name, record, time.perf_counter() - since), *worse, sep="\n  ", flush=True
                )
    write(kept, options.report)


if __name__ == "__main__":
    main()
