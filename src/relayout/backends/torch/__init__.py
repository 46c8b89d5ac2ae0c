"""PyTorch as a runtime: a model becomes one readable Python module."""

from __future__ import annotations

from importlib.util import find_spec

from relayout.errors import RelayoutError

if find_spec("torch") is None:
    raise RelayoutError("compiling for torch needs torch: pip install 'relayout[torch]'")
