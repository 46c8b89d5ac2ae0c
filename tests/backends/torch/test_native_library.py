"""How the library of C++ kernels is built, kept, reported where it is missing, and shared."""

from __future__ import annotations

import multiprocessing
import os
import platform
import signal
import threading
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from relayout.backends.torch.providers.native_interface import (  # noqa: E402
    INTERFACE,
    KernelKind,
)
from relayout.backends.torch.providers.native_region import (  # noqa: E402
    native_failure,
    native_source,
)
from relayout.backends.torch.providers.native_steps import (  # noqa: E402
    Buffer,
    NativeStep,
    entry_of,
    placed,
)
from relayout.backends.torch.runtime.native import NativeProgram  # noqa: E402
from relayout.backends.torch.runtime.native_library import (  # noqa: E402
    NativeFailure,
    NativeSource,
    built_library,
)

needs_compiler = pytest.mark.skipif(native_failure() is not None, reason=str(native_failure()))

COMPILER = """#!/bin/sh
case "$*" in
  *--version) echo "{version}"; echo "of no matter $(date +%N)";;
  *--help=target) test -n "{target}" && echo "{target}";;
  *) echo built >> {log}; sleep {seconds}; echo library > kernels.so;;
esac
"""


def stand_in(
    folder: Path,
    *,
    name: str = "c++",
    version: str = "1.0",
    target: str = "this machine",
    seconds: str = "0",
) -> str:
    """A compiler with given answers that takes its time and notes when it compiles."""
    path = folder / name
    log = folder / "log"
    path.write_text(COMPILER.format(log=log, seconds=seconds, version=version, target=target))
    path.chmod(0o755)
    return str(path)


def builds(folder: Path) -> int:
    return len((folder / "log").read_text().splitlines())


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RELAYOUT_CACHE", str(tmp_path / "cache"))


def test_a_library_is_built_once(tmp_path: Path) -> None:
    compiler = stand_in(tmp_path)
    paths = {built_library("int x;", compiler, ["-O1"]) for _ in range(3)}
    assert [path.read_text() for path in paths] == ["library\n"]
    assert builds(tmp_path) == 1


@pytest.mark.parametrize(
    ("source", "flags", "answers"),
    [
        ("int y;", ["-O1"], {}),
        ("int x;", ["-O2"], {}),
        ("int x;", ["-O1"], {"name": "another"}),
        ("int x;", ["-O1"], {"version": "1.1"}),
        ("int x;", ["-O1"], {"target": "another machine"}),
    ],
)
def test_whatever_changes_a_library_is_in_its_name(
    source: str, flags: list[str], answers: dict[str, str], tmp_path: Path
) -> None:
    first = built_library("int x;", stand_in(tmp_path), ["-O1"])
    second = built_library(source, stand_in(tmp_path, **answers), flags)
    assert first != second
    assert builds(tmp_path) == 2


def test_a_compiler_that_does_not_resolve_its_flags_builds_for_this_processor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiler = stand_in(tmp_path, target="")
    first = built_library("int x;", compiler, [])
    monkeypatch.setattr(platform, "machine", lambda: "another")
    assert built_library("int x;", compiler, []) != first


def test_of_two_processes_one_builds(tmp_path: Path) -> None:
    compiler = stand_in(tmp_path, seconds="0.5")
    context = multiprocessing.get_context("fork")
    given = ("int x;", compiler, ["-O1"])
    processes = [context.Process(target=built_library, args=given) for _ in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(30)
    assert [process.exitcode for process in processes] == [0, 0]
    assert builds(tmp_path) == 1


# -- what is reported ------------------------------------------------------------------------------


def reason_of(source: NativeSource) -> str:
    library = source.library
    assert isinstance(library, NativeFailure)
    return library.reason


@needs_compiler
def test_the_reason_is_the_first_error_of_the_compiler() -> None:
    text = "#include <stdint.h>\n#warning not this\n#error first\n#error second\n"
    reason = reason_of(NativeSource(INTERFACE.literal, text))
    assert reason.endswith("error: #error first")
    assert "\n" not in reason


def test_a_library_that_cannot_be_loaded_has_a_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CXX", stand_in(tmp_path))
    assert "kernels-" in reason_of(NativeSource(INTERFACE.literal, ""))


def test_a_cache_that_cannot_be_written_has_a_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("CXX", stand_in(tmp_path))
    monkeypatch.setenv("RELAYOUT_CACHE", str(tmp_path / "file" / "cache"))
    assert str(tmp_path / "file") in reason_of(NativeSource(INTERFACE.literal, ""))


def test_the_reason_is_reported_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    source = NativeSource(INTERFACE.literal, "")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        programs = [NativeProgram(source, [], 0, {}, ((), ()), doubled) for _ in range(2)]
    assert [str(each.message) for each in caught] == [
        "torch does the work of C++ kernels: there is no compiler 'no-such-compiler'"
    ]
    assert [program(None, 3) for program in programs] == [6, 6]


def doubled(_weights: Any, x: int) -> int:
    return 2 * x


# -- forks and threads -----------------------------------------------------------------------------

IMAGE = (1, 20, 20, 64)


@pytest.fixture
def product() -> NativeProgram:
    """A product with steps for two threads."""
    step = NativeStep(KernelKind.CONVOLUTION, Buffer(IMAGE, 0), Buffer(IMAGE), ("matrix", "w"), "b")
    places, arena = placed([step], [step.result])
    ports = (("last",), ((places[step.result], IMAGE, True),))
    weights = {"w": torch.eye(IMAGE[3]), "b": torch.zeros(IMAGE[3])}
    return NativeProgram(
        native_source(), [entry_of(step, places)], arena, weights, ports, lambda: None
    )


def image(seed: int) -> Any:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(IMAGE, generator=generator).permute(0, 3, 1, 2)


@pytest.fixture
def _two_threads() -> Any:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def status_of_child(work: Callable[[], bool], seconds: float = 60.0) -> int:
    """How a forked process ends: 0 if it finds what it wants."""
    child = os.fork()
    if child == 0:
        is_right = False
        try:
            is_right = work()
        finally:
            os._exit(0 if is_right else 1)
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    raise AssertionError("the child hangs")


def running_threads() -> int:
    return len(list(Path("/proc/self/task").iterdir()))


@needs_compiler
@pytest.mark.usefixtures("_two_threads")
def test_a_forked_process_starts_threads_of_its_own(product: NativeProgram) -> None:
    x = image(0)
    assert torch.equal(product(None, x)[0], x)

    def runs() -> bool:
        before = running_threads()
        same = all(torch.equal(product(None, x)[0], x) for _ in range(20))
        return same and (before, running_threads()) == (1, 2)

    assert status_of_child(runs) == 0
    assert torch.equal(product(None, x)[0], x)


@needs_compiler
@pytest.mark.usefixtures("_two_threads")
def test_a_process_may_be_forked_while_kernels_run(product: NativeProgram) -> None:
    x = image(0)
    held, forked = threading.Event(), threading.Event()

    def hold() -> None:
        with product.library.lock:
            held.set()
            forked.wait()

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait()
    try:
        assert status_of_child(lambda: torch.equal(product(None, x)[0], x), 10.0) == 0
    finally:
        forked.set()
        holder.join()


@needs_compiler
@pytest.mark.usefixtures("_two_threads")
def test_several_threads_call_one_program(product: NativeProgram) -> None:
    def is_right(seed: int) -> bool:
        x = image(seed)
        return all(torch.equal(product(None, x)[0], x) for _ in range(50))

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(is_right, range(8)))
