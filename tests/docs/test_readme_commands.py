"""Every command that README shows is run, on a model of the tree."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import onnx
import pytest

from docs.layers import ROOT
from relayout.cli import main
from relayout.cli.demo_model import network

NEEDS_TORCH = ("compile", "run", "bench", "calibrate")
WITHOUT_NUMBERS = ("optimize", "fuse", "compare")
"""Numbers are compared in other tests; here it would take most of the time."""


def lines() -> Iterator[str]:
    """The commands under the heading Use, without comments."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    block = re.search(r"## Use\n\n```\n(.*?)```", text, re.DOTALL)
    assert block is not None
    for line in block[1].splitlines():
        yield line.partition("#")[0].strip()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files that the commands name."""
    path = tmp_path_factory.mktemp("readme")
    for name in ("in", "a", "b"):
        onnx.save(network(), path / f"{name}.onnx")
    made = ["--certificate", str(path / "proof.json"), "-o", str(path / "out.onnx")]
    assert main(["optimize", str(path / "in.onnx"), "--no-verify", *made]) == 0
    return path


@pytest.mark.parametrize("line", list(lines()))
def test_a_command_of_the_readme_runs(
    line: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, command, *rest = shlex.split(line)
    assert program == "relayout"
    if command in NEEDS_TORCH and find_spec("torch") is None:
        pytest.skip("torch is not installed")
    if "litert" in rest and find_spec("ai_edge_litert") is None:
        pytest.skip("LiteRT is not installed")
    quick = ["--no-verify"] if command in WITHOUT_NUMBERS else []
    monkeypatch.chdir(folder)
    if "-" in rest:
        given = (folder / "in.onnx").read_bytes()
        started = [sys.executable, "-m", "relayout", command, *rest, *quick]
        made = subprocess.run(started, input=given, capture_output=True, check=True)
        assert onnx.load_model_from_string(made.stdout).graph.node
        return
    if command == "verify-certificate":
        fresh = ["--certificate", "proof.json", "-o", "out.onnx", "--no-verify"]
        assert main(["optimize", "in.onnx", *fresh]) == 0
    # More than four Transposes: what `check` is there to report.
    assert main([command, *rest, *quick]) == (1 if command == "check" else 0)
