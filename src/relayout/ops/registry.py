"""Finds the rule of a node; an operator nobody wrote a rule for is a barrier."""

from __future__ import annotations

from functools import cache

from relayout.graph.read import NodeView
from relayout.layout.permutation import Permutation
from relayout.layout.transport import Refusal, Transport
from relayout.ops import (
    axis,
    broadcasting,
    contrib,
    control,
    convolution,
    einsum,
    elementwise,
    indexing,
    movement,
    normalization,
    pooling,
    product,
    quantization,
    recurrent,
    reduction,
    source,
    views,
)
from relayout.ops.rule import OpRule, ask, barrier

FAMILIES = (
    elementwise,
    broadcasting,
    axis,
    reduction,
    indexing,
    views,
    movement,
    normalization,
    convolution,
    pooling,
    product,
    einsum,
    quantization,
    recurrent,
    control,
    source,
    contrib,
)

RULES: dict[tuple[str, str], OpRule] = {
    (rule.domain, op_type): rule
    for family in FAMILIES
    for rule in family.RULES
    for op_type in rule.op_types
}


def key_of(view: NodeView) -> tuple[str, str]:
    """Domain and operator; the two names of the standard domain are one."""
    return "" if view.node.domain == "ai.onnx" else view.node.domain, view.op_type


def rule_of(view: NodeView) -> OpRule:
    key = key_of(view)
    return RULES.get(key) or _unknown(*key)


def transport(view: NodeView, order: Permutation) -> Transport | Refusal:
    """The node restated for a lead operand stored in `order`."""
    return ask(rule_of(view), view, order)


@cache
def _unknown(domain: str, op_type: str) -> OpRule:
    name = f"{domain}.{op_type}" if domain else op_type
    return barrier(op_type, reason=f"nothing is known about operator {name}", domain=domain)
