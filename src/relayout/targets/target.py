"""What a runtime can run beyond standard ONNX."""

from __future__ import annotations

from dataclasses import dataclass

from relayout.errors import RelayoutError


@dataclass(frozen=True, slots=True)
class Target:
    """A runtime, as far as choosing operators for it goes."""

    name: str
    fused_matmul: bool = False
    """Whether it has `com.microsoft.FusedMatMul`, a MatMul with transA and transB."""


ONNX = Target("onnx")
"""Any runtime: standard operators only."""

ORT = Target("ort", fused_matmul=True)
"""ONNX Runtime on a CPU."""

TARGETS = {target.name: target for target in (ONNX, ORT)}


def target_of(name: str) -> Target:
    if name not in TARGETS:
        raise RelayoutError(f"unknown target {name!r}; the targets are {', '.join(TARGETS)}")
    return TARGETS[name]
