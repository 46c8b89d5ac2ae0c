"""What takes long to import waits until it is needed, and works as ever then."""

from __future__ import annotations

import subprocess
import sys

OPTIMISES = """
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from relayout.cli import main
from relayout.cli.demo_model import network

with TemporaryDirectory() as folder:
    given, made = Path(folder) / "given.onnx", Path(folder) / "made.onnx"
    given.write_bytes(network().SerializeToString())
    assert main(["optimize", str(given), "-o", str(made), "--no-verify"]) == 0
    assert made.exists()
assert "sympy.core" not in sys.modules
assert "scipy" not in sys.modules
assert "onnxruntime" not in sys.modules
assert "onnx.reference" not in sys.modules
assert "relayout.verify.proof.attempt" not in sys.modules
"""

COMPUTES = """
import relayout.graph.deferred_imports
import onnx_ir

assert str(onnx_ir.SymbolicDim("N") + 1) == "N + 1"
import sympy

assert sympy.Max(1, 2) == 2
"""


def _run(code: str) -> None:
    subprocess.run([sys.executable, "-c", code], check=True)


def test_optimising_loads_no_solver_runtime_or_prover_where_it_needs_none() -> None:
    _run(OPTIMISES)


def test_symbolic_lengths_are_computed_as_ever() -> None:
    _run(COMPUTES)
