"""The action for GitHub: its own lines are run, as a runner would run them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from docs.layers import ROOT
from relayout.cli.demo_model import network

TEXT = (ROOT / "action.yml").read_text(encoding="utf-8")


def last_script() -> str:
    """The lines of the last step."""
    lines = TEXT.rpartition("      run: |\n")[2].splitlines()
    return "\n".join(line.removeprefix("        ") for line in lines)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Models, and a command `relayout` on the path."""
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "a b.onnx").write_bytes(network().SerializeToString())
    command = tmp_path / "bin" / "relayout"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m relayout "$@"\n')
    command.chmod(0o755)
    return tmp_path


@pytest.mark.parametrize(("most", "code"), [("8", 0), ("7", 1)])
def test_the_last_step_checks_and_tells(most: str, code: int, folder: Path) -> None:
    summary = folder / "summary.md"
    environment = {
        **os.environ,
        "MODELS": "models",
        "MOST": most,
        "GITHUB_STEP_SUMMARY": str(summary),
        "PATH": f"{folder / 'bin'}:{os.environ['PATH']}",
    }
    shell = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", last_script()]
    done = subprocess.run(
        shell, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == code, done.stderr
    told = summary.read_text()
    assert told.startswith("```\n")
    assert told.endswith("```\n")
    assert f"8 Transposes, at most {most}" in told


def test_inputs_reach_the_shell_as_data_only() -> None:
    """What a workflow passes on is never part of a script."""
    scripts = [*re.findall(r"run: (?!\|)(.*)$", TEXT, flags=re.MULTILINE), last_script()]
    assert not any("${{" in script for script in scripts)
    assert set(re.findall(r"inputs\.([\w-]+)", TEXT)) == {
        *("models", "max-transposes", "python-version")
    }
