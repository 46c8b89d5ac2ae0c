"""Shapes of products, windows, reductions and normalisations."""

from __future__ import annotations

from collections.abc import Callable

import onnx

from relayout.verify.proof.lengths import Length, plus, times
from relayout.verify.shapes.symbolic import (
    OpenShape,
    Shapes,
    attribute,
    axes_of,
    integer,
    integers,
    text,
)


def matmul(found: Shapes, node: onnx.NodeProto) -> None:
    """A vector is a row on the left, and a column on the right."""
    left, right = found.of_input(node, 0), found.of_input(node, 1)
    if not left or not right:
        return
    found.equal(left[-1], right[-2] if len(right) > 1 else right[0])
    batch = found.broadcast([left[:-2], right[:-2]])
    if batch is not None:
        rows, columns = left[-2:-1], right[-1:] if len(right) > 1 else []
        found.dims[node.output[0]] = [*batch, *rows, *columns]


def gemm(found: Shapes, node: onnx.NodeProto) -> None:
    left, right = found.of_input(node, 0), found.of_input(node, 1)
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


def conv(found: Shapes, node: onnx.NodeProto) -> None:
    dims, weight = found.of_input(node, 0), found.of_input(node, 1)
    if dims is None or weight is None:
        return
    channels, bias = weight[1], found.of_input(node, 2)
    if channels is not None:
        found.equal(dims[1], times(channels, attribute(node, "group", 1)))
    if bias:
        found.equal(bias[0], weight[0])
    kernel = integers(node, "kernel_shape") or weight[2:]
    found.dims[node.output[0]] = [dims[0], weight[0], *_windows(node, dims[2:], list(kernel))]


def conv_transpose(found: Shapes, node: onnx.NodeProto) -> None:
    dims, weight = found.of_input(node, 0), found.of_input(node, 1)
    if dims is None or weight is None:
        return
    found.equal(dims[1], weight[0])
    channels = None if weight[1] is None else times(weight[1], attribute(node, "group", 1))
    found.dims[node.output[0]] = [dims[0], channels, *[None] * (len(dims) - 2)]


def pool(found: Shapes, node: onnx.NodeProto) -> None:
    dims, kernel = found.of_input(node, 0), integers(node, "kernel_shape")
    if dims is not None and kernel is not None:
        for name in node.output:
            found.dims[name] = [*dims[:2], *_windows(node, dims[2:], list(kernel))]


def _windows(node: onnx.NodeProto, dims: OpenShape, kernel: OpenShape) -> OpenShape:
    """How many windows there are along each axis."""
    rank = len(dims)
    steps = integers(node, "strides") or [1] * rank
    apart = integers(node, "dilations") or [1] * rank
    pads = integers(node, "pads") or [0] * 2 * rank
    automatic = text(node, "auto_pad", "NOTSET")
    found: OpenShape = []
    for i, (dim, size) in enumerate(zip(dims, kernel, strict=True)):
        if dim is None or not isinstance(size, int):
            found.append(None)
        elif automatic.startswith("SAME"):
            found.append(_quotient_up(dim, steps[i]))
        else:
            padded = 0 if automatic == "VALID" else pads[i] + pads[i + rank]
            places = plus(dim, padded - apart[i] * (size - 1))
            # A window that only begins inside counts for some pools, and is not spoken of here.
            found.append(
                None if attribute(node, "ceil_mode", 0) else _quotient_up(places, steps[i])
            )
    return found


def _quotient_up(dim: Length, step: int) -> Length | None:
    if step == 1:
        return dim
    return -(-dim // step) if isinstance(dim, int) else None


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


def global_pool(found: Shapes, node: onnx.NodeProto) -> None:
    dims = found.of_input(node, 0)
    if dims is not None:
        found.dims[node.output[0]] = [*dims[:2], *[1] * (len(dims) - 2)]


GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
REDUCTIONS = (
    *("ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean"),
    *("ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare"),
)
RULES: dict[str, Callable[[Shapes, onnx.NodeProto], None]] = {
    **dict.fromkeys(REDUCTIONS, reduce),
    **dict.fromkeys(("ArgMax", "ArgMin"), position),
    **dict.fromkeys(("AveragePool", "LpPool", "MaxPool"), pool),
    **dict.fromkeys(("BatchNormalization", "InstanceNormalization"), per_channel),
    **dict.fromkeys(("GlobalAveragePool", "GlobalLpPool", "GlobalMaxPool"), global_pool),
    **dict.fromkeys(("LayerNormalization", "RMSNormalization"), layer_normalization),
    "Conv": conv,
    "ConvTranspose": conv_transpose,
    **dict.fromkeys(GATES, recurrent),
    "Einsum": einsum,
    "Gemm": gemm,
    "GroupNormalization": group_normalization,
    "MatMul": matmul,
    "TopK": largest,
}
