"""Compares in a process of its own, so that no model can bring down its caller."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import onnx

from relayout.verify.child import FORESEE, Child, answered
from relayout.verify.quantisers import tensors_of
from relayout.verify.verdict import NumericOptions, NumericVerdict, unknown

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

WORKER = "relayout.verify.worker"

Answers: TypeAlias = Callable[[str, float], tuple[int, str, str]]
"""From a request, and the seconds for it, to how a process ended and what it wrote."""

LONGEST = 600.0
"""Seconds that a comparison may take."""

SHARE_OF_MEMORY = 0.9
GIGABYTE = 1e9
# A model may need far more than it stores, but one that stores little and needs this is a bomb.
MEMORY_OF_ANY = 6 * GIGABYTE
MEMORY_PER_BYTE = 16
# By this key a tensor names the file that holds its data.
EXTERNAL_KEY = b"location"
# How much of a file is looked through at a time.
BLOCK = 1 << 20
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
    options = options or NumericOptions()
    if memory is None:
        memory = default_memory(options, before, after)
    return verdict_of(WORKER, two_files(before, after, options), seconds, memory)


@dataclass(slots=True)
class Standby:
    """As `compare_isolated`; the process for the first comparison may start before there is one.

    It may read the given model before there is another.
    """

    _child: Child | None = None
    _foresees: bool = False

    def start(self) -> None:
        """Let a process read its modules while the models are made."""
        # Where none can be started, the comparison says so.
        with suppress(OSError):
            self._child = self._child or Child.of(WORKER)

    def foresee(self, before: Path, new: Sequence[str], options: NumericOptions) -> None:
        """Let the process read the given model, of which some constants will be stored anew.

        It does so once: what is made later is seldom far from what was made first.
        """
        if self._child is None or self._foresees or not before.is_file():
            return
        self._foresees = True
        asked = {"before": str(before), "new": [*new], "fix_defaults": options.fix_defaults}
        memory = MEMORY_OF_ANY if options.memory is None else options.memory * GIGABYTE
        self._child.foresee(json.dumps({FORESEE: asked, "memory": int(memory)}))

    def __call__(self, before: Path, after: Path, options: NumericOptions) -> NumericVerdict:
        child, self._child = self._child, None
        if child is None:
            return compare_isolated(before, after, options)
        memory = default_memory(options, before, after)
        return _verdict(child.answered, two_files(before, after, options), LONGEST, memory)

    def __enter__(self) -> Standby:
        return self

    def __exit__(self, *_: object) -> None:
        if self._child is not None:
            self._child.end()


def two_files(before: Path, after: Path, options: NumericOptions) -> dict[str, Any]:
    """What the worker is asked about two models."""
    files = {"before": str(before), "after": str(after)}
    return {**files, "options": options.to_json(), "stored": _stored(before) + _stored(after)}


def verdict_of(
    worker: str, request: Mapping[str, Any], seconds: float = LONGEST, memory: int | None = None
) -> NumericVerdict:
    """The verdict that a module writes for a request, run in a process of its own.

    It must not take more than some seconds and bytes of memory.
    """
    return _verdict(partial(answered, worker), request, seconds, memory)


def _verdict(
    answers: Answers, request: Mapping[str, Any], seconds: float, memory: int | None
) -> NumericVerdict:
    try:
        status, output, errors = answers(json.dumps({**request, "memory": memory}), seconds)
    except subprocess.TimeoutExpired:
        return unknown(f"the comparison took more than {seconds:g} s")
    except OSError as error:
        return unknown(f"no process could be started: {error}")
    if status == 0:
        return NumericVerdict.from_json(json.loads(output))
    return unknown(_death(status, errors, memory))


def default_memory(options: NumericOptions, *models: Path) -> int | None:
    """The bytes that a comparison may use: as asked, or in proportion to what models store."""
    if options.memory is not None:
        return int(options.memory * GIGABYTE)
    stored = sum(_stored(path) for path in models)
    enough = int(MEMORY_OF_ANY + MEMORY_PER_BYTE * stored)
    if not hasattr(os, "sysconf") or "SC_PHYS_PAGES" not in os.sysconf_names:
        return enough
    pages, size = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    return min(enough, int(pages * size * SHARE_OF_MEMORY))


def _stored(path: Path) -> int:
    """The bytes of a model and of the files that it names."""
    files = {path, *(path.parent / name for name in _external_files(path))}
    return sum(file.stat().st_size for file in files if file.is_file())


def _external_files(path: Path) -> set[str]:
    """The files in which a model keeps data; most have none, and need not be parsed to see it."""
    try:
        if not _holds(path, EXTERNAL_KEY):
            return set()
        model = onnx.load(path, load_external_data=False)
    except Exception:  # noqa: BLE001 - what cannot be read is the worker's to report
        return set()
    return {
        entry.value
        for tensor in tensors_of(model.graph)
        for entry in tensor.external_data
        if entry.key == EXTERNAL_KEY.decode()
    }


def _holds(path: Path, key: bytes) -> bool:
    """Whether a key is in a file, of which a block is read at a time."""
    last = b""
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            if key in last + block[: len(key)] or key in block:
                return True
            last = block[-len(key) :]
    return False


def _death(status: int, errors: str, memory: int | None) -> str:
    last = errors.strip().splitlines()[-1:] or ["no message"]
    if status == KILLED or any(sign in errors for sign in SIGNS_OF_EXHAUSTION):
        much = f"{memory / GIGABYTE:.3g} GB" if memory else "all memory"
        return f"the runtime needed more than {much}, the most it was allowed; --memory allows more"
    if status < 0:
        return f"the comparison crashed ({signal.strsignal(-status) or -status})"
    return f"the comparison failed: {last[0]}"
