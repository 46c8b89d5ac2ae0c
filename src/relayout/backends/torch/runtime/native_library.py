"""The C++ kernels as a library, built once for a machine; copied into written modules."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from relayout.backends.torch.runtime.native_interface import (
    c_type,
    interface_digest,
    native_header,
    step_structure,
    structure_layout,
)


class NativeFailure:
    """Why there is no library."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        self.is_reported = False

    def report(self) -> None:
        """Warn the user, once."""
        import warnings

        if not self.is_reported:
            self.is_reported = True
            warnings.warn(f"torch does the work of C++ kernels: {self.reason}", stacklevel=2)


def checked_functions(path: Path, interface: dict[str, Any]) -> Any:
    """The functions of a library, which has to be built for this very interface."""
    import ctypes

    functions = ctypes.CDLL(str(path))
    for name, (result, *parameters) in interface["functions"].items():
        function = getattr(functions, name, None)
        if function is None:
            raise ImportError(f"{path} has no function {name}")
        function.restype, function.argtypes = c_type(result), [*map(c_type, parameters)]
    if functions.interface_digest() != interface_digest(interface).encode():
        raise ImportError(f"{path} was built for another interface")
    wanted = structure_layout(step_structure(interface))
    if [functions.step_layout(index) for index in range(len(wanted))] != wanted:
        raise ImportError(f"{path} has fields of steps at other places than Python")
    return functions


class NativeLibrary:
    """A loaded library; to be called by one thread at a time, which holds its lock."""

    def __init__(self, path: Path, interface: dict[str, Any]) -> None:
        import os
        import threading

        self.functions = checked_functions(path, interface)
        self.step = step_structure(interface)
        self.constants = interface["constants"]
        self.lock = threading.Lock()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._after_fork)

    def _after_fork(self) -> None:
        """Threads end where a process is forked: none runs kernels or holds the lock any more."""
        import threading

        self.lock = threading.Lock()
        self.functions.after_fork()

    def run(self, steps: Any, threads: int) -> None:
        """Perform steps, an array of structures, with a team of threads."""
        self.functions.run(steps, len(steps), threads, None)


class NativeSource:
    """The text of the kernels, and the interface to which the header is made."""

    def __init__(self, interface: dict[str, Any], text: str) -> None:
        self.interface = interface
        self.text = text

    @property
    def whole(self) -> str:
        """What is compiled."""
        return native_header(self.interface) + self.text

    @functools.cached_property
    def library(self) -> NativeLibrary | NativeFailure:
        """The kernels, built for this machine and kept in a cache, or why there are none."""
        import os
        import shutil

        name = os.environ.get("CXX", "g++")
        found = shutil.which(name)
        if found is None:
            return NativeFailure(f"there is no compiler {name!r}")
        compiler = str(Path(found).absolute())
        try:
            path = built_library(self.whole, compiler, self.interface["flags"])
            return NativeLibrary(path, self.interface)
        except (OSError, ImportError) as error:
            return NativeFailure(str(error))


def built_library(source: str, compiler: str, flags: Sequence[str]) -> Path:
    """Where a source lies compiled; of several processes that want it one compiles it."""
    import hashlib
    import os

    version, target = compiler_version(compiler), target_of(compiler, flags)
    parts = (source, " ".join(flags), compiler, version, target)
    key = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:24]
    home = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "relayout"
    folder = Path(os.environ.get("RELAYOUT_CACHE", home))
    library = folder / f"kernels-{key}.so"
    if not library.exists():
        folder.mkdir(parents=True, exist_ok=True)
        with locked(folder / "kernels.lock"):
            if not library.exists():
                compile_library(source, [compiler, *flags], library)
    return library


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock of a file; it is free again when this process ends, however that happens."""
    import fcntl

    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def compile_library(source: str, command: Sequence[str], library: Path) -> None:
    """Compile a source; the library appears as a whole or not at all."""
    import subprocess
    import tempfile

    with tempfile.TemporaryDirectory(dir=library.parent) as scratch:
        text, built = Path(scratch) / "kernels.cpp", Path(scratch) / "kernels.so"
        text.write_text(source)
        done = subprocess.run(
            [*command, text.name, "-o", built.name],
            cwd=scratch,
            capture_output=True,
            check=False,
            text=True,
            errors="replace",
        )
        if done.returncode != 0:
            raise ImportError(f"{command[0]} failed: {first_error(done.stderr)}")
        built.replace(library)


def first_error(text: str) -> str:
    """The first line of a compiler's messages that names an error."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return next((line for line in lines if "error" in line), lines[0] if lines else "no message")


def compiler_version(compiler: str) -> str:
    """The first line of what a compiler reports as its version."""
    return answer_of([compiler, "--version"]).partition("\n")[0]


def target_of(compiler: str, flags: Sequence[str]) -> str:
    """What flags for this machine mean: as the compiler resolves them, or else the processor."""
    import platform

    resolved = answer_of([compiler, *flags, "-Q", "--help=target"])
    if resolved:
        return resolved
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    wanted = ("vendor_id", "cpu family", "model", "flags", "CPU ", "Features")
    processor = sorted({line for line in lines if line.startswith(wanted)})
    return "\n".join([platform.machine(), platform.processor(), *processor])


def answer_of(command: Sequence[str]) -> str:
    """What a command prints; nothing if it fails."""
    import subprocess

    done = subprocess.run(command, capture_output=True, check=False, text=True, errors="replace")
    return done.stdout if done.returncode == 0 else ""
