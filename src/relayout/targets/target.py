"""What a runtime can run beyond standard ONNX."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from relayout.errors import RelayoutError
from relayout.graph.read import NodeView
from relayout.ops.registry import key_of, rule_of
from relayout.ops.rule import OpRule
from relayout.targets import ort


@dataclass(frozen=True, slots=True)
class Target:
    """A runtime, as far as choosing operators for it goes."""

    name: str
    fused_matmul: bool = False
    """Whether it has `com.microsoft.FusedMatMul`, a MatMul with transA and transB."""
    fused_attention: bool = False
    """Whether it has `com.microsoft.MultiHeadAttention`."""
    rules: Mapping[tuple[str, str], OpRule] = field(default_factory=dict)
    """By domain and operator, the rules that differ from those of standard ONNX."""

    def rule_of(self, view: NodeView) -> OpRule:
        """What is known of a node on this target."""
        return self.rules.get(key_of(view)) or rule_of(view)


ONNX = Target("onnx")
"""Any runtime: standard operators only."""

ORT = Target("ort", fused_matmul=True, fused_attention=True, rules=ort.RULES)
"""ONNX Runtime on a CPU."""

TARGETS = {target.name: target for target in (ONNX, ORT)}


def target_of(name: str) -> Target:
    if name not in TARGETS:
        raise RelayoutError(f"unknown target {name!r}; the targets are {', '.join(TARGETS)}")
    return TARGETS[name]
