"""Shapes of the operators of com.microsoft, which ONNX Runtime documents."""

from __future__ import annotations

from collections.abc import Callable

import onnx

from relayout.verify.shapes import elementwise, products, windows
from relayout.verify.shapes.symbolic import OpenShape, Shapes, attribute

DOMAIN = "com.microsoft"


def fused_matmul(found: Shapes, node: onnx.NodeProto) -> None:
    """A product of matrices that may be stored with rows and columns exchanged."""
    if attribute(node, "transBatchA", 0) or attribute(node, "transBatchB", 0):
        return
    sides = [found.of_input(node, i) for i in (0, 1)]
    names = ("transA", "transB")
    plain = [
        _exchanged(dims) if attribute(node, name, 0) else dims
        for dims, name in zip(sides, names, strict=True)
    ]
    products.product(found, node, *plain)


def _exchanged(dims: OpenShape | None) -> OpenShape | None:
    return dims if dims is None or len(dims) < 2 else [*dims[:-2], dims[-1], dims[-2]]


def quantised_gemm(found: Shapes, node: onnx.NodeProto) -> None:
    """Each matrix is followed by its scale and its zero point."""
    products.gemm(found, node, right_at=3)


def quantised_pair(found: Shapes, node: onnx.NodeProto) -> None:
    """Two operands, each followed by its scale and its zero point, are broadcast."""
    dims = found.broadcast([found.of_input(node, 0), found.of_input(node, 3)])
    if dims is not None:
        found.dims[node.output[0]] = dims


def normalised_sum(found: Shapes, node: onnx.NodeProto) -> None:
    """What is added and normalised has one shape; parameters run along the last axis."""
    dims = found.broadcast([found.of_input(node, 0), found.of_input(node, 1)])
    if dims is None:
        return
    for i in range(2, len(node.input)):
        found.same(found.of_input(node, i), dims[-1:])
    found.dims[node.output[0]] = dims


UNARY = (
    *("FastGelu", "Gelu", "QLinearLeakyRelu", "QLinearSigmoid", "QLinearSoftmax", "QuickGelu"),
)
RULES: dict[str, Callable[[Shapes, onnx.NodeProto], None]] = {
    **dict.fromkeys(UNARY, elementwise.same),
    **dict.fromkeys(("QLinearAdd", "QLinearMul"), quantised_pair),
    **dict.fromkeys(("QuantizeLinear", "DequantizeLinear"), elementwise.quantised),
    **dict.fromkeys(("SkipLayerNormalization", "SkipSimplifiedLayerNormalization"), normalised_sum),
    "BiasGelu": elementwise.elementwise,
    "FusedConv": windows.conv,
    "FusedGemm": products.gemm,
    "FusedMatMul": fused_matmul,
    "MatMulInteger16": products.matmul,
    "QGemm": quantised_gemm,
}
