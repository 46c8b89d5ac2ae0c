"""All lowerings by domain and operator."""

from __future__ import annotations

import onnx_ir as ir

from relayout.backends.litert.call import LiteLowering
from relayout.backends.litert.lower import (
    activation,
    blocks,
    convolution,
    einsum,
    elementwise,
    indexing,
    normalization,
    padding,
    pooling,
    product,
    quantization,
    recurrent,
    reduction,
    resize,
    views,
)
from relayout.errors import RelayoutError
from relayout.graph.region import KERNEL_DOMAIN
from relayout.targets.channels_last import KERNELS

STANDARD = (
    activation,
    blocks,
    convolution,
    einsum,
    elementwise,
    indexing,
    normalization,
    padding,
    pooling,
    product,
    quantization,
    recurrent,
    reduction,
    resize,
    views,
)

LOWERINGS: dict[str, LiteLowering] = {
    op_type: lowering for family in STANDARD for op_type, lowering in family.LOWERINGS.items()
}

CHANNELS_LAST: dict[str, LiteLowering] = {
    op_type: lowering
    for family in (blocks, convolution, normalization, pooling, quantization, resize)
    for op_type, lowering in family.CHANNELS_LAST.items()
}
"""By standard operator, for tensors that are stored channels last."""

CONTRIB: dict[str, LiteLowering] = {**product.CONTRIB, **quantization.CONTRIB}
CONTRIB_DOMAIN = "com.microsoft"

FOLDED = frozenset({"Constant", "ConstantOfShape", "Range"})
"""Operators without a builtin that are constants where their operands are."""


def lowering_of(node: ir.Node) -> LiteLowering | None:
    if node.domain == KERNEL_DOMAIN and node.op_type in KERNELS:
        return CHANNELS_LAST.get(KERNELS[node.op_type].operator.op_type)
    if node.domain == CONTRIB_DOMAIN:
        return CONTRIB.get(node.op_type)
    return LOWERINGS.get(node.op_type) if node.domain in {"", "ai.onnx"} else None


def missing(model: ir.Model) -> list[tuple[str, str]]:
    """The operators, by domain and name, that have no builtin."""
    keys = {
        ("" if node.domain == "ai.onnx" else node.domain, node.op_type)
        for node in model.graph
        if lowering_of(node) is None and node.op_type not in FOLDED
    }
    return sorted(keys)


def missing_error(names: list[tuple[str, str]]) -> RelayoutError:
    texts = [f"{domain}.{op_type}" if domain else op_type for domain, op_type in names]
    return RelayoutError(f"LiteRT has no builtin for {', '.join(texts)}")
