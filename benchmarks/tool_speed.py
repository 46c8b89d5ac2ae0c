"""What optimising itself costs: python -m benchmarks.tool_speed PATH [--only NAME ...]

PATH is as for `benchmarks.zoo`. Every model is given to `relayout optimize`, with and without
verification, and to onnxsim and onnxslim where they are installed, in turns, each in a process of
its own on one core. One line a model: CPU seconds of the whole process (user and system, with the
processes it started) and its peak memory, the least of `--rounds`; geometric means of ratios, worst
cases and the bars last. The ratios are kept and compared with those of the last run.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from benchmarks.bytecode import with_bytecode
from benchmarks.kept import compared
from benchmarks.zoo import Entry, entries

UNVERIFIED, VERIFIED, SIM, SLIM = "no-verify", "verify", "onnxsim", "onnxslim"
MEGABYTE = 1 << 20
MEMORY_MEGABYTES = 300
"""What a run may take beyond twice the model."""

Command: TypeAlias = Callable[[Entry, Path], list[str]]


def _relayout(*flags: str) -> Command:
    def command(entry: Entry, output: Path) -> list[str]:
        call = [sys.executable, "-m", "relayout", "optimize", str(entry.file), "-o", str(output)]
        return [*call, *(() if "--no-verify" in flags else entry.arguments()), *flags]

    return command


def _peer(module: str) -> Command:
    return lambda entry, output: [sys.executable, "-m", module, str(entry.file), str(output)]


TOOLS: dict[str, Command] = {
    UNVERIFIED: _relayout("--no-verify"),
    VERIFIED: _relayout(),
    SIM: _peer("onnxsim"),
    SLIM: _peer("onnxslim"),
}


@dataclass(frozen=True)
class Cost:
    """What one run took; `delivered` is whether it ended well and wrote a file."""

    seconds: float
    megabytes: float
    delivered: bool


Costs: TypeAlias = dict[str, Cost]


def cost_of(command: Sequence[str], output: Path) -> Cost:
    """One process, with those that it waits for.

    Bytecode is kept beside the output, so that every tool finds it as after an installation.
    """
    output.unlink(missing_ok=True)
    compiled, nowhere = with_bytecode(output.parent / "bytecode"), subprocess.DEVNULL
    child = subprocess.Popen(command, env=compiled, stdout=nowhere, stderr=nowhere)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    seconds = usage.ru_utime + usage.ru_stime
    delivered = child.returncode == 0 and output.exists()
    return Cost(round(seconds, 3), round(usage.ru_maxrss / 1024, 1), delivered)


def costs(entry: Entry, tools: Sequence[str], rounds: int, scratch: Path) -> Costs:
    """The least of some rounds in which the tools take turns."""
    output = scratch / "out.onnx"
    runs: dict[str, list[Cost]] = {tool: [] for tool in tools}
    for _ in range(rounds):
        for tool in tools:
            runs[tool].append(cost_of(TOOLS[tool](entry, output), output))
    return {tool: min(made, key=lambda cost: cost.seconds) for tool, made in runs.items()}


def mean(ratios: Iterable[float]) -> float:
    logs = [math.log(ratio) for ratio in ratios]
    return math.exp(sum(logs) / len(logs)) if logs else math.nan


def ratios(table: dict[str, Costs], one: str, other: str) -> dict[str, float]:
    """CPU time of one tool over another's, for the models that both deliver."""
    return {
        name: row[one].seconds / row[other].seconds
        for name, row in table.items()
        if {one, other} <= row.keys() and row[one].delivered and row[other].delivered
    }


def _means(table: dict[str, Costs]) -> dict[str, float]:
    pairs = [(ours, peer) for ours in (UNVERIFIED, VERIFIED) for peer in (SIM, SLIM)]
    found = {f"{ours} / {peer}": mean(ratios(table, ours, peer).values()) for ours, peer in pairs}
    return {name: value for name, value in found.items() if not math.isnan(value)}


def _worst(table: dict[str, Costs]) -> Iterator[str]:
    for ours, peer in ((UNVERIFIED, SIM), (UNVERIFIED, SLIM), (VERIFIED, SLIM)):
        found = sorted(ratios(table, ours, peer).items(), key=lambda pair: -pair[1])[:5]
        if found:
            named = ", ".join(f"{name} {ratio:.2f}" for name, ratio in found)
            yield f"most above {peer}, {ours}: {named}"


def _over_memory(table: dict[str, Costs], sizes: dict[str, float]) -> Iterator[str]:
    for name, row in table.items():
        allowed = 2 * sizes[name] + MEMORY_MEGABYTES
        for tool in (UNVERIFIED, VERIFIED):
            if tool in row and row[tool].megabytes > allowed:
                taken = row[tool].megabytes
                yield f"{name}, {tool}: {taken:.0f} MB where {allowed:.0f} are allowed"


def _line(name: str, row: Costs) -> str:
    def shown(cost: Cost) -> str:
        return f"{cost.seconds:.2f} s {cost.megabytes:.0f} MB" + (
            "" if cost.delivered else " (not)"
        )

    return f"{name}: " + ", ".join(f"{tool} {shown(cost)}" for tool, cost in row.items())


def _summary(table: dict[str, Costs], sizes: dict[str, float]) -> Iterator[str]:
    for name, value in _means(table).items():
        yield f"{name}: {value:.3f} on the geometric mean of {len(table)} models"
    yield from _worst(table)
    over = list(_over_memory(table, sizes))
    yield f"{len(over)} runs above twice the model and {MEMORY_MEGABYTES} MB"
    yield from over


def _write(file: Path, table: dict[str, Costs]) -> None:
    rows = {name: {tool: vars(cost) for tool, cost in row.items()} for name, row in table.items()}
    file.write_text(json.dumps(rows, indent=1, sort_keys=True) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", type=Path)
    parser.add_argument("--only", nargs="+", default=[], help="names of models")
    parser.add_argument("--tools", nargs="+", choices=TOOLS, default=list(TOOLS))
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--json", type=Path, help="where to write every figure")
    parser.add_argument("--kept", type=Path, help="what the last run kept")
    options = parser.parse_args()
    peers = {SIM, SLIM}
    tools = [each for each in options.tools if each not in peers or importlib.util.find_spec(each)]
    # On one core the pools of threads of all tools have one thread each.
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    table: dict[str, Costs] = {}
    sizes: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        for entry in entries(options.path, options.only, Path(folder)):
            if not table:
                costs(entry, tools, 1, Path(folder))
            sizes[entry.name] = entry.file.stat().st_size / MEGABYTE
            table[entry.name] = costs(entry, tools, options.rounds, Path(folder))
            print(_line(entry.name, table[entry.name]), flush=True)
            if options.json is not None:
                _write(options.json, table)
    for line in _summary(table, sizes):
        print(line)
    for line in compared("tool_speed", _means(table), options.kept):
        print(line)


if __name__ == "__main__":
    main()
