"""Shapes of products, recurrences, reductions and normalisations."""

from __future__ import annotations

from collections.abc import Callable

import onnx

from relayout.verify.proof.lengths import Length
from relayout.verify.shapes.symbolic import (
    OpenShape,
    Shapes,
    attribute,
    axes_of,
    integer,
    text,
)


def matmul(found: Shapes, node: onnx.NodeProto, right_at: int = 1) -> None:
    product(found, node, found.of_input(node, 0), found.of_input(node, right_at))


def product(
    found: Shapes, node: onnx.NodeProto, left: OpenShape | None, right: OpenShape | None
) -> None:
    """A vector is a row on the left, and a column on the right."""
    if not left or not right:
        return
    found.equal(left[-1], right[-2] if len(right) > 1 else right[0])
    batch = found.broadcast([left[:-2], right[:-2]])
    if batch is not None:
        rows, columns = left[-2:-1], right[-1:] if len(right) > 1 else []
        found.dims[node.output[0]] = [*batch, *rows, *columns]


def quantised_matmul(found: Shapes, node: onnx.NodeProto) -> None:
    matmul(found, node, right_at=3)


def gemm(found: Shapes, node: onnx.NodeProto, right_at: int = 1) -> None:
    left, right = found.of_input(node, 0), found.of_input(node, right_at)
    if left is None or right is None or len(left) != 2 or len(right) != 2:
        return
    rows, inner = left[::-1] if attribute(node, "transA", 0) else left
    other, columns = right[::-1] if attribute(node, "transB", 0) else right
    found.equal(inner, other)
    found.dims[node.output[0]] = [rows, columns]


def einsum(found: Shapes, node: onnx.NodeProto) -> None:
    """Equations with both sides and without dots."""
    equation = text(node, "equation", "").replace(" ", "")
    operands, arrow, result = equation.partition("->")
    if not arrow or "." in equation:
        return
    sizes: dict[str, Length | None] = {}
    for i, letters in enumerate(operands.split(",")):
        dims = found.of_input(node, i)
        if dims is None:
            continue
        for letter, dim in zip(letters, dims, strict=True):
            found.equal(sizes.setdefault(letter, dim), dim)
    found.dims[node.output[0]] = [sizes.get(letter) for letter in result]


def reduce(found: Shapes, node: onnx.NodeProto) -> None:
    dims, axes = found.of_input(node, 0), axes_of(found, node)
    if dims is None or (axes is None and len(node.input) > 1):
        return
    _reduced(found, node, dims, range(len(dims)) if axes is None else axes)


def position(found: Shapes, node: onnx.NodeProto) -> None:
    """Of the largest or the smallest element along an axis."""
    dims = found.of_input(node, 0)
    if dims is not None:
        _reduced(found, node, dims, [attribute(node, "axis", 0)])


def _reduced(found: Shapes, node: onnx.NodeProto, dims: OpenShape, axes: range | list[int]) -> None:
    places = {axis % len(dims) for axis in axes}
    kept: OpenShape = [1 if i in places else dim for i, dim in enumerate(dims)]
    if not attribute(node, "keepdims", 1):
        kept = [dim for i, dim in enumerate(dims) if i not in places]
    found.dims[node.output[0]] = kept


def largest(found: Shapes, node: onnx.NodeProto) -> None:
    """The largest along an axis, and where they are."""
    dims, counts = found.of_input(node, 0), found.numbers_of(node, 1)
    if dims is None:
        return
    axis = attribute(node, "axis", -1) % len(dims)
    for name in node.output:
        found.dims[name] = [*dims[:axis], counts[0] if counts else None, *dims[axis + 1 :]]


def per_channel(found: Shapes, node: onnx.NodeProto) -> None:
    """Operators with parameters along axis 1."""
    dims = found.of_input(node, 0)
    if dims is None or len(dims) < 2:
        return
    for i in range(1, len(node.input)):
        parameter = found.of_input(node, i)
        if parameter is not None and len(parameter) == 1:
            found.equal(dims[1], parameter[0])
    found.dims[node.output[0]] = dims


def group_normalization(found: Shapes, node: onnx.NodeProto) -> None:
    per_channel(found, node)
    dims = found.of_input(node, 0)
    if dims is not None and len(dims) > 1:
        found.part(dims[1], attribute(node, "num_groups", 1))


def layer_normalization(found: Shapes, node: onnx.NodeProto) -> None:
    """Parameters are broadcast to the axes that are normalised."""
    dims = found.of_input(node, 0)
    if dims is None:
        return
    axis = attribute(node, "axis", -1) % len(dims)
    for i in range(1, len(node.input)):
        found.broadcast([dims[axis:], found.of_input(node, i)])
    found.dims[node.output[0]] = dims
    for name in node.output[1:]:
        found.dims[name] = [*dims[:axis], *[1] * (len(dims) - axis)]


def loss(found: Shapes, node: onnx.NodeProto) -> None:
    """Of scores by class, axis 1, against a class for each place, perhaps with a weight a class."""
    scores, weights = found.of_input(node, 0), found.of_input(node, 2)
    if scores is None:
        return
    places = [scores[0], *scores[2:]]
    found.same(found.of_input(node, 1), places)
    found.same(weights, scores[1:2])
    found.dims[node.output[0]] = places if text(node, "reduction", "mean") == "none" else []
    for name in node.output[1:]:
        found.dims[name] = scores


def recurrent(found: Shapes, node: onnx.NodeProto) -> None:
    """Sequences of batches, or batches of sequences; matrices for each direction and gate."""
    dims, weight = found.of_input(node, 0), found.of_input(node, 1)
    hidden = integer(node, "hidden_size")
    if dims is None or weight is None or hidden is None:
        return
    sides, rows = weight[0], GATES[node.op_type] * hidden
    if attribute(node, "layout", 0):
        batch, steps = dims[:2]
        every, state = [batch, steps, sides, hidden], [batch, sides, hidden]
    else:
        steps, batch = dims[:2]
        every, state = [steps, sides, batch, hidden], [sides, batch, hidden]
    operands = [dims, [sides, rows, dims[2]], [sides, rows, hidden], [sides, 2 * rows], [batch]]
    for i, expected in enumerate([*operands, state, state]):
        found.same(found.of_input(node, i), expected)
    for name, made in zip(node.output, (every, state, state), strict=False):
        found.dims[name] = made


GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
REDUCTIONS = (
    *("ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean"),
    *("ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare"),
)
RULES: dict[str, Callable[[Shapes, onnx.NodeProto], None]] = {
    **dict.fromkeys(REDUCTIONS, reduce),
    **dict.fromkeys(("ArgMax", "ArgMin"), position),
    **dict.fromkeys(("BatchNormalization", "InstanceNormalization"), per_channel),
    **dict.fromkeys(("LayerNormalization", "RMSNormalization"), layer_normalization),
    **dict.fromkeys(GATES, recurrent),
    "Einsum": einsum,
    "Gemm": gemm,
    "GroupNormalization": group_normalization,
    "MatMul": matmul,
    "MatMulInteger": matmul,
    "NegativeLogLikelihoodLoss": loss,
    "QLinearMatMul": quantised_matmul,
    "SoftmaxCrossEntropyLoss": loss,
    "TopK": largest,
}
