"""TVM's own FuseOps chooses the same groups, on thousands of random graphs."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def said_by(benchmark: str, *words: str) -> list[str]:
    """In a process of its own: TVM brings libraries that do not mix with others."""
    command = [sys.executable, "-m", f"benchmarks.{benchmark}", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.split()


@pytest.mark.skipif(find_spec("tvm") is None, reason="the extra tvm is not installed")
@pytest.mark.parametrize(("form", "graphs"), [((), 2500), (("--files",), 300)])
def test_tvm_chooses_the_same_groups(form: tuple[str, ...], graphs: int) -> None:
    words = said_by("fuse_oracle", str(graphs), *form)
    assert words[0] == str(graphs)
    assert int(words[2]) > graphs / 3
    assert "0 differences" in " ".join(words)


def test_files_within_limits() -> None:
    words = said_by("fuse_limits", "40")
    assert int(words[2]) > 100
    assert "0 beyond a limit" in " ".join(words)
