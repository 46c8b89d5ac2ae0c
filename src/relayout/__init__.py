"""The layout compiler for ONNX models.

import relayout

result = relayout.optimize("model.onnx", "smaller.onnx")
print(result.before.transposes, "->", result.after.transposes)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = [
    "FuseResult",
    "NumericOptions",
    "RelayoutError",
    "Result",
    "check_certificate",
    "compile",
    "fuse",
    "infer_layouts",
    "inspect",
    "optimize",
]

if TYPE_CHECKING:
    from relayout.api import Result, check_certificate, infer_layouts, inspect, optimize
    from relayout.compiling import compile  # noqa: A004 - the word for it
    from relayout.errors import RelayoutError
    from relayout.fused import FuseResult, fuse
    from relayout.verify.verdict import NumericOptions

_HOMES = {
    "FuseResult": "relayout.fused",
    "NumericOptions": "relayout.verify.verdict",
    "RelayoutError": "relayout.errors",
    "Result": "relayout.api",
    "check_certificate": "relayout.api",
    "compile": "relayout.compiling",
    "fuse": "relayout.fused",
    "infer_layouts": "relayout.api",
    "inspect": "relayout.api",
    "optimize": "relayout.api",
}


def __getattr__(name: str) -> Any:
    """Import on first use: onnx takes its time, and `relayout --help` should not wait for it."""
    if name not in _HOMES:
        raise AttributeError(f"module 'relayout' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
