"""Locks between processes, by a file beside what is locked."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

STALE = 30.0
"""Seconds after which a lock by existence was left by a process that crashed."""


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock of a file that is not opened for anything else."""
    if fcntl is None:
        with locked_by_existence(path):
            yield
        return
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # free again when the file is closed, also by an end
        yield


@contextlib.contextmanager
def locked_by_existence(path: Path) -> Iterator[None]:
    """Hold a lock that is the existence of a file, which every system can create once."""
    own = path.with_name(f"{path.name}.held")
    while True:
        try:
            os.close(os.open(own, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
            break
        except FileExistsError:
            with contextlib.suppress(FileNotFoundError):
                if time.time() - own.stat().st_mtime > STALE:
                    own.unlink()
            time.sleep(0.01)
    try:
        yield
    finally:
        own.unlink(missing_ok=True)
