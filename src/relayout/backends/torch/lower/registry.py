"""All lowerings by domain and operator."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from types import ModuleType

import onnx_ir as ir

from relayout.backends.torch.lower import (
    activation,
    attention,
    constants,
    contrib,
    control,
    convolution,
    detection,
    elementwise,
    indexing,
    machine_learning,
    ngrams,
    normalization,
    padding,
    pooling,
    product,
    quantization,
    quantized_elements,
    recurrent,
    reduction,
    resize,
    sequence,
    signal,
    stateful,
    training,
    views,
)
from relayout.backends.torch.program.call import Lowering
from relayout.errors import RelayoutError
from relayout.graph.region import subgraphs_of

FAMILIES = (
    activation,
    attention,
    constants,
    control,
    convolution,
    detection,
    elementwise,
    indexing,
    ngrams,
    normalization,
    padding,
    pooling,
    product,
    quantization,
    recurrent,
    reduction,
    resize,
    sequence,
    signal,
    stateful,
    views,
)

DOMAINS: dict[str, tuple[ModuleType, ...]] = {
    "": FAMILIES,
    contrib.DOMAIN: (contrib, quantized_elements),
    machine_learning.DOMAIN: (machine_learning,),
    training.DOMAIN: (training,),
}

LOWERINGS: dict[tuple[str, str], Lowering] = {
    (domain, op_type): lowering
    for domain, families in DOMAINS.items()
    for family in families
    for op_type, lowering in family.LOWERINGS.items()
}


SPELT_OUT: dict[tuple[str, str], Lowering] = {
    ("", "Attention"): partial(attention.attention, spelt=True),
    (contrib.DOMAIN, "MultiHeadAttention"): partial(contrib.multi_head_attention, spelt=True),
}
"""Lowerings of attentions to more than one operator, which a compiler may join with others."""


def missing(model: ir.Model) -> list[tuple[str, str]]:
    """The operators, by domain and name, that have no lowering."""
    keys = dict.fromkeys((_domain(node), node.op_type) for node in _nodes(model.graph))
    return sorted(key for key in keys if key not in LOWERINGS)


def check_lowerings(model: ir.Model) -> None:
    """Refuse a model that cannot be lowered; all operators that are missing are named."""
    names = [f"{domain}.{op_type}" if domain else op_type for domain, op_type in missing(model)]
    if names:
        raise RelayoutError(f"torch has no lowering of {', '.join(names)}")


def _domain(node: ir.Node) -> str:
    return "" if node.domain == "ai.onnx" else node.domain


def _nodes(graph: ir.Graph) -> Iterator[ir.Node]:
    for node in graph:
        yield node
        for body in subgraphs_of(node):
            yield from _nodes(body)
