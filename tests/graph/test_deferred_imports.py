"""What takes long to import waits until it is needed, and works as ever then."""

from __future__ import annotations

import subprocess
import sys

OPTIMISES = """
import sys
import relayout
from relayout.cli.demo_model import network

assert relayout.optimize(network(), verify=False).after.transposes == 1
assert "sympy.core" not in sys.modules
assert "scipy" not in sys.modules
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


def test_optimising_loads_neither_sympy_nor_scipy_where_it_needs_neither() -> None:
    _run(OPTIMISES)


def test_symbolic_lengths_are_computed_as_ever() -> None:
    _run(COMPUTES)
