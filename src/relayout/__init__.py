"""The layout compiler for ONNX models.

import relayout

result = relayout.optimize("model.onnx", "smaller.onnx")
print(result.before.transposes, "->", result.after.transposes)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from relayout.graph.deferred_imports import defer_imports
from relayout.graph.io.version import __version__ as __version__

__all__ = [
    "Backend",
    "BadModelError",
    "Equivalence",
    "FuseResult",
    "LayoutPass",
    "Measuring",
    "NumericOptions",
    "Objective",
    "OpFacts",
    "Profile",
    "RelayoutError",
    "Result",
    "Strategy",
    "Target",
    "VerificationError",
    "check_certificate",
    "check_profile",
    "compare_strategies",
    "compile",
    "count",
    "explain_node",
    "fuse",
    "infer_layouts",
    "inspect",
    "optimize",
    "register_backend",
    "register_operator",
    "register_strategy",
    "register_target",
    "simplify",
    "verify_models",
]

if TYPE_CHECKING:
    from relayout.api import (
        Backend,
        BadModelError,
        Equivalence,
        FuseResult,
        LayoutPass,
        Measuring,
        NumericOptions,
        Objective,
        OpFacts,
        Profile,
        RelayoutError,
        Result,
        Strategy,
        Target,
        VerificationError,
        check_certificate,
        check_profile,
        compare_strategies,
        compile,  # noqa: A004 - the word for it
        count,
        explain_node,
        fuse,
        infer_layouts,
        inspect,
        optimize,
        register_backend,
        register_operator,
        register_strategy,
        register_target,
        simplify,
        verify_models,
    )

defer_imports()


def __getattr__(name: str) -> Any:
    """Import on first use: onnx takes its time, and `relayout --help` should not wait for it."""
    if name not in __all__:
        raise AttributeError(f"module 'relayout' has no attribute {name!r}")
    from relayout import api

    return getattr(api, name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
