"""PyTorch as a runtime: a model becomes one readable Python module."""

from __future__ import annotations

from importlib.util import find_spec

from relayout.errors import missing

if find_spec("torch") is None:
    raise missing("compiling for torch needs torch", "torch")
