"""Compares in a process of its own, so that no model can bring down its caller."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import onnx
from google.protobuf.message import DecodeError

from relayout.verify.verdict import NumericOptions, NumericVerdict, unknown

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

LONGEST = 600.0
"""Seconds that a comparison may take."""

SHARE_OF_MEMORY = 0.9
BASE_MEMORY = 8 * 10**9
"""Bytes of address space that a comparison may take, beside those in proportion to the models."""

TIMES_THE_FILES = 8
"""Both models are held, with their activations, by more than one runtime."""

MEMORY_SETTING = "RELAYOUT_MEMORY"
"""The environment variable that sets the limit of memory, in GB."""

GIGABYTE = 1e9
# How a system short of memory ends a process.
KILLED = -9
SIGNS_OF_EXHAUSTION = ("ExhaustedError", "MemoryError", "bad_alloc", "Cannot allocate memory")


def compare_isolated(
    before: Path,
    after: Path,
    options: NumericOptions | None = None,
    seconds: float = LONGEST,
    memory: int | None = None,
) -> NumericVerdict:
    """As `compare`; beyond a limit, or where the comparison crashes, the verdict is unknown."""
    files = {"before": str(before), "after": str(after)}
    request = {**files, "options": (options or NumericOptions()).to_json()}
    limit = memory or memory_for(before, after)
    return verdict_of("relayout.verify.worker", request, seconds, limit)


def verdict_of(
    worker: str, request: Mapping[str, Any], seconds: float = LONGEST, memory: int | None = None
) -> NumericVerdict:
    """The verdict that a module writes for a request, run in a process of its own.

    It must not take more than some seconds and bytes of memory.
    """
    text = json.dumps({**request, "memory": memory})
    try:
        status, output, errors = _answered(worker, text, seconds)
    except subprocess.TimeoutExpired:
        return unknown(f"the comparison took more than {seconds:g} s")
    except OSError as error:
        return unknown(f"no process could be started: {error}")
    if status == 0:
        return NumericVerdict.from_json(json.loads(output))
    return unknown(_death(status, errors, memory))


def _answered(worker: str, request: str, seconds: float) -> tuple[int, str, str]:
    """The exit code of a worker, and what it wrote to its output and its errors."""
    child = subprocess.Popen(
        [sys.executable, "-m", worker],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        errors="replace",
        env=_environment(),
    )
    # The line to the worker stays open, and out of reach of `communicate`, which would close it:
    # the worker ends when it closes, however this process ends.
    line, child.stdin = child.stdin, None
    with child:
        try:
            _say(line, request)
            output, errors = child.communicate(timeout=seconds)
        finally:
            child.kill()
            _hang_up(line)
    return child.returncode, output, errors


def _say(line: IO[str] | None, request: str) -> None:
    """Send a request; that a worker died before it read one is seen from how it ended."""
    if line is not None:
        with suppress(BrokenPipeError):
            line.write(f"{request}\n")
            line.flush()


def _hang_up(line: IO[str] | None) -> None:
    if line is not None:
        with suppress(BrokenPipeError):
            line.close()


def _environment() -> Mapping[str, str]:
    """The child finds the package where this process found it."""
    source = str(Path(__file__).resolve().parents[2])
    known = os.environ.get("PYTHONPATH")
    path = os.pathsep.join([source, known] if known else [source])
    # One thread of the algebra library is enough and needs the least address space.
    return {**os.environ, "PYTHONPATH": path, "OPENBLAS_NUM_THREADS": "1"}


def memory_for(*models: Path) -> int | None:
    """The bytes that a comparison of these files may take; None where that cannot be limited.

    So much as the setting says, or else in proportion to the files, and never all of the machine's.
    """
    if not hasattr(os, "sysconf") or "SC_PHYS_PAGES" not in os.sysconf_names:
        return None
    asked = os.environ.get(MEMORY_SETTING, "")
    if asked.replace(".", "", 1).isdecimal():
        return int(float(asked) * GIGABYTE)
    pages, size = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    held = TIMES_THE_FILES * sum(map(_bytes_of, models))
    return min(int(pages * size * SHARE_OF_MEMORY), BASE_MEMORY + held)


def _bytes_of(model: Path) -> int:
    """The bytes of a model, with those in the files that it names, as far as they can be read."""
    try:
        message = onnx.load(model, load_external_data=False)
        names = {entry.value for entry in _external_entries(message) if entry.key == "location"}
        return model.stat().st_size + sum((model.parent / name).stat().st_size for name in names)
    except (OSError, ValueError, DecodeError):
        return 0


def _external_entries(message: onnx.ModelProto) -> Iterator[onnx.StringStringEntryProto]:
    for tensor in message.graph.initializer:
        yield from tensor.external_data


def _death(status: int, errors: str, memory: int | None) -> str:
    last = errors.strip().splitlines()[-1:] or ["no message"]
    if status == KILLED or any(sign in errors for sign in SIGNS_OF_EXHAUSTION):
        if memory is None:
            return "the runtime needed more than all memory"
        more = math.ceil(2 * memory / GIGABYTE)
        much = f"{memory / GIGABYTE:.3g} GB"
        return f"the runtime needed more than {much}; {MEMORY_SETTING}={more} allows more"
    if status < 0:
        return f"the comparison crashed ({signal.strsignal(-status) or -status})"
    return f"the comparison failed: {last[0]}"
