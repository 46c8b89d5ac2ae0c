"""The example plugin, installed into a folder of its own and used from there."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from relayout.assign.strategies.registry import STRATEGIES
from relayout.cli.demo_model import network
from relayout.targets.target import TARGETS

PLUGIN = Path(__file__).parents[2] / "examples" / "plugin"
OFFLINE = ("--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--no-cache-dir")


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The variables of a process that finds the plugin installed."""
    source, site = tmp_path_factory.mktemp("source") / "plugin", tmp_path_factory.mktemp("site")
    leftovers = shutil.ignore_patterns("build", "*.egg-info", "__pycache__")
    shutil.copytree(PLUGIN, source, ignore=leftovers)
    _run([sys.executable, "-m", "pip", "install", *OFFLINE, "--target", str(site), str(source)])
    found = filter(None, (str(site), os.environ.get("PYTHONPATH")))
    return {**os.environ, "PYTHONPATH": os.pathsep.join(found), "PYTHONDONTWRITEBYTECODE": "1"}


def _run(
    command: list[str], environment: dict[str, str] | None = None, folder: Path | None = None
) -> str:
    done = subprocess.run(
        command, env=environment, cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_its_own_tests_pass(environment: dict[str, str], tmp_path: Path) -> None:
    tests = shutil.copytree(PLUGIN / "tests", tmp_path / "tests")
    printed = _run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", str(tests)], environment
    )
    assert " passed" in printed
    assert "skipped" not in printed


def test_the_command_line_uses_it(environment: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "in.onnx").write_bytes(network().SerializeToString())
    relayout = [sys.executable, "-m", "relayout", "optimize", "in.onnx", "-o", "out.onnx"]
    named = ["--target", "example-npu", "--strategy", "hill-climb"]
    printed = _run([*relayout, *named], environment, tmp_path)
    assert "8 -> 0 Transposes; proved identical; equal" in printed
    assert (tmp_path / "out.onnx").exists()


def test_it_is_not_known_where_it_is_not_installed() -> None:
    assert "example-npu" not in TARGETS
    assert "hill-climb" not in STRATEGIES
