"""Commands that are asked to end: no file is left, no worker runs on, the code names the signal."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from relayout.cli import main
from tests.graph.makers import model, node, value, write
from tests.verify.test_isolated import endless

STARTED, SLOWEST = 60.0, 30.0
"""Seconds to wait for a worker, and for a process to end."""

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals as POSIX has them")


@pytest.fixture
def running(tmp_path: Path) -> subprocess.Popen[str]:
    """A command in the middle of a comparison that would never end."""
    given = endless(tmp_path / "in.onnx")
    return _started("fuse", str(given), "-o", str(tmp_path / "out.onnx"), "--wrap-all")


def _started(*call: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "relayout", *call],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _children(process: int) -> list[int]:
    listed = Path(f"/proc/{process}/task/{process}/children")
    return [int(word) for word in listed.read_text().split()] if listed.exists() else []


def _worker(process: subprocess.Popen[str]) -> int:
    """The process that compares, once there is one and it is at work."""
    if not Path("/proc/self/task").exists():
        pytest.skip("processes are looked up in /proc")
    end = time.monotonic() + STARTED
    while time.monotonic() < end and process.poll() is None:
        for worker in _children(process.pid):
            if "onnxruntime" in Path(f"/proc/{worker}/maps").read_text():
                return worker
        time.sleep(0.05)
    raise AssertionError(f"no worker was started: {process.communicate()}")


def _is_gone(pid: int) -> bool:
    end = time.monotonic() + SLOWEST
    while time.monotonic() < end:
        status = Path(f"/proc/{pid}/stat")
        if not status.exists() or status.read_text().rpartition(")")[2].split()[0] == "Z":
            return True
        time.sleep(0.05)
    return False


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_comparison_is_given_up(
    tmp_path: Path, running: subprocess.Popen[str], number: signal.Signals
) -> None:
    worker = _worker(running)
    running.send_signal(number)
    _, errors = running.communicate(timeout=SLOWEST)
    assert running.returncode == 128 + number
    assert errors.strip().splitlines()[-1] == "relayout: interrupted; nothing was written"
    assert "Traceback" not in errors
    assert _is_gone(worker)
    assert [path.name for path in tmp_path.iterdir()] == ["in.onnx"]


def test_a_worker_ends_with_a_parent_that_cannot_say_so(running: subprocess.Popen[str]) -> None:
    worker = _worker(running)
    running.kill()
    running.communicate()
    assert _is_gone(worker)


@pytest.mark.parametrize("stage", ["reading", "optimising", "writing", "comparing numbers"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_every_stage_can_be_ended(
    tmp_path: Path, stage: str, number: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair = [node("Transpose", "x", "a", perm=[1, 0]), node("Transpose", "a", "b", perm=[1, 0])]
    given = write(model([*pair, node("Relu", "b", "y")]), tmp_path / "in.onnx")

    def reached(_progress: object, name: str) -> None:
        if name == stage:
            os.kill(os.getpid(), number)

    monkeypatch.setattr("relayout.cli.terminal.Progress.__call__", reached)
    assert main(["optimize", str(given), "-o", str(tmp_path / "out.onnx")]) == 128 + number
    assert [path.name for path in tmp_path.iterdir()] == ["in.onnx"]
    assert signal.getsignal(number) is signal.SIG_DFL
    assert not _children(os.getpid())


def test_what_was_ignored_stays_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As under `nohup`."""
    given = write(model([node("Relu", "x", "y")], inputs=[value("x", [2])]), tmp_path / "in.onnx")
    monkeypatch.setattr(
        "relayout.cli.terminal.Progress.__call__", lambda *_: os.kill(os.getpid(), signal.SIGHUP)
    )
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        assert main(["optimize", str(given), "-o", str(tmp_path / "out.onnx")]) == 0
    finally:
        signal.signal(signal.SIGHUP, before)
