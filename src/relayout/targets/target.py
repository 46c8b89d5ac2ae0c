"""What a runtime can run beyond standard ONNX."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import onnx_ir as ir

from relayout.errors import RelayoutError
from relayout.graph.read import NodeView
from relayout.graph.region import regions_of
from relayout.ops.registry import key_of, rule_of
from relayout.ops.rule import OpRule
from relayout.targets import nhwc, ort
from relayout.targets.channels_last import HWOI, OHWI


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

    def lacking(self, model: ir.Model) -> int:
        """How many nodes of a model run in an order that the target has no kernel for."""
        views = (region.view(node) for region in regions_of(model) for node in region.graph)
        return sum(self.rule_of(view).wanted(view) is not None for view in views)


ONNX = Target("onnx", rules=nhwc.WAY_BACK)
"""Any runtime: standard operators only."""

ORT = Target("ort", fused_matmul=True, fused_attention=True, rules=ort.RULES | nhwc.WAY_BACK)
"""ONNX Runtime on a CPU."""

NHWC = Target("nhwc", rules=nhwc.rules())
"""A runtime or compiler whose kernels read channels last, and their weights as HWIO."""

NHWC_HWOI = Target("nhwc-hwoi", rules=nhwc.rules(HWOI))
NHWC_OHWI = Target("nhwc-ohwi", rules=nhwc.rules(OHWI))

TARGETS = {target.name: target for target in (ONNX, ORT, NHWC, NHWC_HWOI, NHWC_OHWI)}


def target_of(name: str) -> Target:
    if name not in TARGETS:
        raise RelayoutError(f"unknown target {name!r}; the targets are {', '.join(TARGETS)}")
    return TARGETS[name]
