"""Shapes of tensors that are made of numbers, such as ranges and windows."""

from __future__ import annotations

from collections.abc import Callable

import onnx

from relayout.verify.proof.lengths import minus
from relayout.verify.shapes.symbolic import Shapes, attribute, integers


def filled(found: Shapes, node: onnx.NodeProto) -> None:
    dims = found.numbers_of(node, 0)
    if dims is not None:
        found.dims[node.output[0]] = dims


def drawn(found: Shapes, node: onnx.NodeProto) -> None:
    found.dims[node.output[0]] = list(integers(node, "shape") or ())


def window(found: Shapes, node: onnx.NodeProto) -> None:
    """As many factors as its operand says."""
    count = found.numbers_of(node, 0)
    if count:
        found.dims[node.output[0]] = count[:1]


def steps(found: Shapes, node: onnx.NodeProto) -> None:
    """From a start to a limit; other steps than 1 are not read."""
    start, limit = found.numbers_of(node, 0), found.numbers_of(node, 1)
    if not start or not limit or found.fixed(node, 2) != [1]:
        return
    low, high = start[0], limit[0]
    if low is not None and high is not None:
        found.dims[node.output[0]] = [minus(high, low)]


def one_hot(found: Shapes, node: onnx.NodeProto) -> None:
    dims, depth = found.of_input(node, 0), found.numbers_of(node, 1)
    if dims is None or not depth:
        return
    axis = attribute(node, "axis", -1) % (len(dims) + 1)
    found.dims[node.output[0]] = [*dims[:axis], depth[0], *dims[axis:]]


def mel_weights(found: Shapes, node: onnx.NodeProto) -> None:
    """Half of a spectrum, and one, by bins."""
    bins, length = found.numbers_of(node, 0), found.fixed(node, 1)
    if bins and length:
        found.dims[node.output[0]] = [length[0] // 2 + 1, bins[0]]


RULES: dict[str, Callable[[Shapes, onnx.NodeProto], None]] = {
    **dict.fromkeys(("BlackmanWindow", "HammingWindow", "HannWindow"), window),
    **dict.fromkeys(("RandomNormal", "RandomUniform"), drawn),
    "ConstantOfShape": filled,
    "MelWeightMatrix": mel_weights,
    "OneHot": one_hot,
    "Range": steps,
}
