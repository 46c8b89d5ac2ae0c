"""A process that answers one request; it may start while its caller still finds out what to ask."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

FORESEE = "foresee"
"""The key of a line before the request, from which a process learns what it will be asked about."""

MOST_AHEAD = 1 << 15
"""Characters of such a line: pipes hold them, so that nobody waits until they are read."""


@dataclass(frozen=True, slots=True)
class Child:
    """A process that waits for its request."""

    process: subprocess.Popen[str]
    line: IO[str]
    """Stays open, and out of reach of `communicate`, which would close it: the process ends when it
    closes, however this one ends."""

    @classmethod
    def of(cls, module: str) -> Child:
        """A process that runs a module."""
        process = subprocess.Popen(
            [sys.executable, "-m", module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            errors="replace",
            env=_environment(),
        )
        line, process.stdin = process.stdin, None
        assert line is not None
        return cls(process, line)

    def foresee(self, line: str) -> None:
        """Tell what the request will be about; a long line would have to be waited for."""
        if len(line) < MOST_AHEAD:
            self._say(line)

    def answered(self, request: str, seconds: float) -> tuple[int, str, str]:
        """The exit code, and what was written to the output and the errors."""
        try:
            self._say(request)
            output, errors = self.process.communicate(timeout=seconds)
        finally:
            self.end()
        return self.process.returncode, output, errors

    def _say(self, request: str) -> None:
        """Send a request; that a process died before it read one is seen from how it ended."""
        with suppress(BrokenPipeError):
            self.line.write(f"{request}\n")
            self.line.flush()

    def end(self) -> None:
        with self.process:
            self.process.kill()
            with suppress(BrokenPipeError):
                self.line.close()


def answered(module: str, request: str, seconds: float) -> tuple[int, str, str]:
    """The exit code of a process that runs a module, and what it wrote."""
    return Child.of(module).answered(request, seconds)


def _environment() -> Mapping[str, str]:
    """The child finds the package where this process found it."""
    source = str(Path(__file__).resolve().parents[2])
    known = os.environ.get("PYTHONPATH")
    path = os.pathsep.join([source, known] if known else [source])
    # One thread of the algebra library is enough and needs the least address space.
    return {**os.environ, "PYTHONPATH": path, "OPENBLAS_NUM_THREADS": "1"}
