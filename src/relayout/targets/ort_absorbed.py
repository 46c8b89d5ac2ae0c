"""Nodes that ONNX Runtime takes into their neighbours at its default level."""

from __future__ import annotations

import onnx_ir as ir

from relayout.graph.read import constant_of, is_op, perm_of, shape_of
from relayout.targets.ort import CONTRIB_DOMAIN, FUSED_MATMUL, FUSED_TYPES
from relayout.targets.ort_attention import taken_in
from relayout.targets.ort_norms import norms_of_one_kernel
from relayout.targets.ort_quantised_convs import joined_transposes
from relayout.targets.products import has_bias

INTO_PRODUCT = frozenset(
    {(1, 0), (0, 2, 1), (1, 0, 2), (1, 2, 0), (0, 1, 3, 2), (1, 2, 0, 3), (1, 2, 3, 0)}
)
"""What becomes a flag of FusedMatMul."""
BEFORE_BLOCKS, AFTER_BLOCKS = (0, 3, 1, 2), (0, 2, 3, 1)
"""What the copies to and from blocks of channels around convolutions do as well."""


def absorbed(graph: ir.Graph) -> set[ir.Node]:
    """The nodes of a graph that no kernel of their own runs."""
    folded = {node for node in graph if is_op(node, "Transpose") and folds(node)}
    biases = {reader for node in graph if _takes_bias(node) for reader, _ in node.outputs[0].uses()}
    softmaxes = (node for node in graph if is_op(node, "Softmax"))
    norms = (nodes[1:] for nodes in norms_of_one_kernel(graph))
    return folded.union(biases, *map(taken_in, softmaxes), *norms)


def absorbed_from_standard(graph: ir.Graph) -> set[ir.Node]:
    """The same where convolutions on bytes are standard ones, around which it moves Transposes."""
    return absorbed(graph) | joined_transposes(graph)


def _takes_bias(node: ir.Node) -> bool:
    """Whether a product of known lengths becomes a Gemm with the bias that is added to it."""
    if not is_op(node, "MatMul") or not has_bias(node):
        return False
    first = node.inputs[0]
    maker = None if first is None else first.producer()
    shape = None if first is None else shape_of(first)
    is_folded = maker is not None and is_op(maker, "Transpose") and folds(maker)
    return not is_folded and shape is not None and all(isinstance(dim, int) for dim in shape)


def folds(node: ir.Node) -> bool:
    """Whether a Transpose of floats becomes a part of all its readers, or of what it reads."""
    source, order, result = node.inputs[0], perm_of(node), node.outputs[0]
    if source is None or order is None or source.dtype not in FUSED_TYPES:
        return False
    if result.is_graph_output():
        return False
    readers = [reader for reader, _ in result.uses()]
    if order.axes in INTO_PRODUCT:
        return bool(readers) and all(map(_is_product, readers))
    if order.axes == BEFORE_BLOCKS:
        return len(readers) == 1 and _is_convolution(readers[0])
    maker = source.producer()
    is_only = len(list(source.uses())) == 1
    return order.axes == AFTER_BLOCKS and is_only and maker is not None and _is_convolution(maker)


def _is_product(node: ir.Node) -> bool:
    is_fused = node.domain == CONTRIB_DOMAIN and node.op_type == FUSED_MATMUL
    return is_fused or is_op(node, "MatMul")


def _is_convolution(node: ir.Node) -> bool:
    return is_op(node, "Conv") and constant_of(node.inputs[1]) is not None
