"""TVM's own FuseOps chooses the same groups, on thousands of random graphs."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_tvm_chooses_the_same_groups() -> None:
    """In a process of its own: TVM brings libraries that do not mix with others."""
    if find_spec("tvm") is None:
        pytest.skip("the extra tvm is not installed")
    command = [sys.executable, "-m", "benchmarks.fuse_oracle", "2500"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    words = done.stdout.split()
    assert words[0] == "2500"
    assert int(words[2]) > 1000
    assert "0 differences" in done.stdout
