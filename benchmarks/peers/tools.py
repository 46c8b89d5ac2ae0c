"""The tools whose results are compared, each run in a process of its own."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TypeAlias

from benchmarks.zoo import Entry

Command: TypeAlias = Callable[[Entry, Path], Sequence[str]]
"""From a model and the place of its result to a command line."""

LONGEST = 300.0
"""Seconds on the clock after which a tool is ended."""

SAVED_BY_ORT = """
import sys, onnxruntime
options = onnxruntime.SessionOptions()
options.optimized_model_filepath = sys.argv[2]
options.intra_op_num_threads = 1
onnxruntime.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
"""


@dataclass(frozen=True, slots=True)
class Tool:
    """A program that writes a model anew."""

    name: str
    package: str
    command: Command

    @property
    def is_installed(self) -> bool:
        return find_spec(self.package) is not None

    @property
    def version(self) -> str:
        return version(self.package)


@dataclass(frozen=True, slots=True)
class Spent:
    """What a run of a tool took."""

    seconds: float
    """Of CPU time, of the process and those it waited for."""
    megabytes: float
    """The most memory that it had at once."""
    reason: str = ""
    """Why it wrote nothing, if it did not."""


def run(tool: Tool, entry: Entry, output: Path) -> Spent:
    """Run a tool on one thread, as far as tools have a way to ask for that."""
    with tempfile.TemporaryFile() as errors:
        child = subprocess.Popen(
            [sys.executable, *tool.command(entry, output)],
            stdout=subprocess.DEVNULL,
            stderr=errors,
            env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
        )
        is_late = _ended_late(child)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        errors.seek(0)
        said = errors.read().decode(errors="replace").strip().splitlines()
    spent = usage.ru_utime + usage.ru_stime
    reason = ""
    if not output.exists():
        reason = f"more than {LONGEST:.0f} s" if is_late else (said or ["nothing written"])[-1]
    return Spent(round(spent, 3), round(usage.ru_maxrss / 1024, 1), reason[:200])


def _ended_late(child: subprocess.Popen[bytes]) -> bool:
    """Wait for a process without taking its account; end it if it takes too long."""
    fd = os.pidfd_open(child.pid)
    try:
        ready, _, _ = select.select([fd], [], [], LONGEST)
    finally:
        os.close(fd)
    if not ready:
        child.kill()
    return not ready


def relayout(*options: str) -> Command:
    def command(entry: Entry, output: Path) -> list[str]:
        place = ["-o", str(output), "--no-verify", *entry.arguments()]
        return ["-m", "relayout", "optimize", str(entry.file), *place, *options]

    return command


def _module(name: str) -> Command:
    return lambda entry, output: ["-m", name, str(entry.file), str(output)]


TOOLS = (
    Tool("relayout", "relayout", relayout()),
    Tool("relayout bytes", "relayout", relayout("--minimize", "bytes")),
    Tool("relayout count", "relayout", relayout("--minimize", "count")),
    Tool("relayout ort", "relayout", relayout("--target", "ort")),
    Tool("relayout openvino", "relayout", relayout("--target", "openvino")),
    Tool("onnxsim", "onnxsim", _module("onnxsim")),
    Tool("onnxslim", "onnxslim", _module("onnxslim")),
    Tool("ONNX Runtime", "onnxruntime", lambda e, o: ["-c", SAVED_BY_ORT, str(e.file), str(o)]),
)
"""The last saves what it makes of a model at its default level."""
