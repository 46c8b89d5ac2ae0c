"""Packages that onnx-ir imports and a run hardly ever needs, loaded on first use.

onnx-ir computes with symbolic lengths by sympy, whose import takes a third of the time in which
relayout starts. relayout computes with lengths itself.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import LazyLoader
from types import ModuleType

DEFERRED = ("sympy", "onnx_ir._symbolic_shapes")


class _Deferring(MetaPathFinder):
    """Finds these modules as they would be found anyway, and has them loaded on first use."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname not in DEFERRED:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = LazyLoader(spec.loader)
        return spec


def defer_imports() -> None:
    """From now on; what is imported already stays as it is."""
    if not any(isinstance(finder, _Deferring) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Deferring())
