"""What each operator makes of shapes and of lengths that tensors hold."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import onnx
from onnx import helper, numpy_helper

from relayout.verify.linear import OpenLength
from relayout.verify.symbolic import ONE, OpenShape, Shapes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from relayout.verify.interface import Port

END = 1 << 31
"""A bound from here on means the end of an axis."""


def shapes_of(graph: onnx.GraphProto, ports: Sequence[Port]) -> Shapes:
    """What follows from a graph whose inputs are as described."""
    found = Shapes()
    for tensor in graph.initializer:
        found.add_constant(tensor.name, tensor)
    for port in ports:
        if port.kind == "tensor" and port.dims is not None:
            found.dims[port.name] = [OpenLength.of(dim) for dim in port.dims]
    for node in graph.node:
        _add(found, node)
    return found


def _add(found: Shapes, node: onnx.NodeProto) -> None:
    rule = RULES.get(node.op_type)
    if rule is None or node.domain not in ("", "ai.onnx"):
        return
    try:
        rule(found, node)
    except (IndexError, ValueError, ZeroDivisionError):
        # Operands that do not fit the operator: whatever a runtime makes of it, nothing is
        # known of its results.
        for name in node.output:
            found.dims.pop(name, None)
            found.numbers.pop(name, None)


def _attribute(node: onnx.NodeProto, name: str, usual: int) -> int:
    return next((one.i for one in node.attribute if one.name == name), usual)


def _integers(node: onnx.NodeProto, name: str) -> list[int] | None:
    return next((list(one.ints) for one in node.attribute if one.name == name), None)


def _axes(found: Shapes, node: onnx.NodeProto) -> list[int] | None:
    """Axes as an attribute, as they were, or as an operand, as they are."""
    return _integers(node, "axes") or found.fixed(node, 1)


def _constant(found: Shapes, node: onnx.NodeProto) -> None:
    for one in node.attribute:
        if one.name == "value":
            found.add_constant(node.output[0], one.t)
        elif one.name in ("value_int", "value_ints"):
            array = np.asarray(helper.get_attribute_value(one), np.int64)
            found.add_constant(node.output[0], numpy_helper.from_array(array))


def _shape(found: Shapes, node: onnx.NodeProto) -> None:
    dims = found.of_input(node, 0)
    if dims is None:
        return
    start, end = _attribute(node, "start", 0), _attribute(node, "end", len(dims))
    found.numbers[node.output[0]] = dims[slice(start, end)]
    found.dims[node.output[0]] = [OpenLength.of(len(dims[slice(start, end)]))]


def _same(found: Shapes, node: onnx.NodeProto) -> None:
    """The shape, and the numbers, of the first operand."""
    for known in (found.dims, found.numbers):
        if node.input and node.input[0] in known:
            known[node.output[0]] = known[node.input[0]]


def _elementwise(found: Shapes, node: onnx.NodeProto) -> None:
    dims = found.broadcast(found.dims.get(name) for name in node.input if name)
    if dims is not None:
        found.dims[node.output[0]] = dims
    _arithmetic(found, node)


def _arithmetic(found: Shapes, node: onnx.NodeProto) -> None:
    operands = [found.numbers.get(name) for name in node.input]
    rule = ARITHMETIC.get(node.op_type)
    if rule is None or len(operands) != 2 or operands[0] is None or operands[1] is None:
        return
    left, right = operands[0], operands[1]
    width = max(len(left), len(right))
    if {len(left), len(right)} <= {1, width}:
        pairs = zip(left * (width // len(left)), right * (width // len(right)), strict=True)
        found.numbers[node.output[0]] = [
            None if one is None or other is None else rule(one, other) for one, other in pairs
        ]


def _product(left: OpenLength, right: OpenLength) -> OpenLength | None:
    if right.fixed is not None:
        return left.times(right.fixed)
    return right.times(left.fixed) if left.fixed is not None else None


def _quotient(left: OpenLength, right: OpenLength) -> OpenLength | None:
    return None if right.fixed is None else left.divided(right.fixed)


ARITHMETIC: dict[str, Callable[[OpenLength, OpenLength], OpenLength | None]] = {
    "Add": OpenLength.__add__,
    "Sub": OpenLength.__sub__,
    "Mul": _product,
    "Div": _quotient,
}


def _transpose(found: Shapes, node: onnx.NodeProto) -> None:
    dims = found.of_input(node, 0)
    if dims is not None:
        perm = _integers(node, "perm") or list(reversed(range(len(dims))))
        found.dims[node.output[0]] = [dims[axis] for axis in perm]


def _reshape(found: Shapes, node: onnx.NodeProto) -> None:
    dims, target = found.of_input(node, 0), found.numbers.get(node.input[1])
    if target is None:
        return
    if dims is not None:
        zero = OpenLength.of(0)
        target = [
            dims[i] if size == zero and i < len(dims) else size for i, size in enumerate(target)
        ]
        rest = OpenLength.of(-1)
        target = [_left_over(dims, target) if size == rest else size for size in target]
    found.dims[node.output[0]] = [None if size == OpenLength.of(-1) else size for size in target]


def _left_over(dims: OpenShape, target: OpenShape) -> OpenLength | None:
    """The length that makes a target have as many elements as a shape."""
    given = list(dims)
    divisor = 1
    for size in target:
        if size in given and size is not None:
            given.remove(size)
        elif size is None or size.fixed is None:
            return None
        elif size.fixed > 0:
            divisor *= size.fixed
    total: OpenLength | None = ONE
    for size in given:
        total = None if total is None or size is None else _product(total, size)
    return None if total is None else total.divided(divisor)


def _unsqueeze(found: Shapes, node: onnx.NodeProto) -> None:
    dims, axes = found.of_input(node, 0), _axes(found, node)
    if node.input[0] in found.numbers:
        found.numbers[node.output[0]] = found.numbers[node.input[0]]
    if dims is None or axes is None:
        return
    rank = len(dims) + len(axes)
    places = {axis % rank for axis in axes}
    rest = iter(dims)
    found.dims[node.output[0]] = [ONE if i in places else next(rest) for i in range(rank)]


def _squeeze(found: Shapes, node: onnx.NodeProto) -> None:
    dims, axes = found.of_input(node, 0), _axes(found, node)
    if node.input[0] in found.numbers:
        found.numbers[node.output[0]] = found.numbers[node.input[0]]
    if dims is None or axes is None:
        return
    places = {axis % len(dims) for axis in axes}
    found.dims[node.output[0]] = [dim for i, dim in enumerate(dims) if i not in places]


def _flatten(found: Shapes, node: onnx.NodeProto) -> None:
    dims = found.of_input(node, 0)
    if dims is not None:
        found.dims[node.output[0]] = [None, None]


def _concat(found: Shapes, node: onnx.NodeProto) -> None:
    parts = [found.numbers.get(name) for name in node.input]
    if all(part is not None for part in parts):
        found.numbers[node.output[0]] = [one for part in parts for one in part or ()]
    shapes = [found.dims.get(name) for name in node.input]
    known = [dims for dims in shapes if dims is not None]
    if len(known) < len(shapes) or not known:
        return
    axis = _attribute(node, "axis", 0) % len(known[0])
    result = list(known[0])
    for dims in known[1:]:
        for i, dim in enumerate(dims):
            both = result[i], dim
            if i == axis:
                result[i] = None if both[0] is None or dim is None else both[0] + dim
            else:
                found.equal(*both)
    found.dims[node.output[0]] = result


def _gather(found: Shapes, node: onnx.NodeProto) -> None:
    data, index = found.of_input(node, 0), found.of_input(node, 1)
    numbers, places = found.numbers.get(node.input[0]), found.fixed(node, 1)
    if numbers is not None and places is not None:
        found.numbers[node.output[0]] = [numbers[place] for place in places]
    if data is None or index is None:
        return
    axis = _attribute(node, "axis", 0) % len(data)
    found.dims[node.output[0]] = [*data[:axis], *index, *data[axis + 1 :]]


def _slice(found: Shapes, node: onnx.NodeProto) -> None:
    dims = found.of_input(node, 0)
    operands = [found.numbers.get(name) for name in node.input[1:]]
    if dims is None or len(operands) < 2 or operands[0] is None or operands[1] is None:
        return
    starts, ends = operands[0], operands[1]
    axes = found.fixed(node, 3) if len(node.input) > 3 and node.input[3] else range(len(starts))
    steps = found.fixed(node, 4) if len(node.input) > 4 else None
    if axes is None or set(steps or [1]) != {1}:
        return
    result = list(dims)
    for axis, start, end in zip(axes, starts, ends, strict=True):
        result[axis % len(dims)] = _between(dims[axis % len(dims)], start, end)
    found.dims[node.output[0]] = result
    numbers = found.numbers.get(node.input[0])
    bounds = found.fixed(node, 1), found.fixed(node, 2)
    if numbers is not None and bounds[0] and bounds[1]:
        found.numbers[node.output[0]] = numbers[bounds[0][0] : bounds[1][0]]


def _between(
    dim: OpenLength | None, start: OpenLength | None, end: OpenLength | None
) -> OpenLength | None:
    """The length of a part; bounds that are open are taken to lie in the whole."""
    if start is None or end is None:
        return None
    if end.fixed is not None and (end.fixed >= END or end.fixed < 0):
        end = None if dim is None else dim + OpenLength.of(min(end.fixed, 0))
    if start.fixed is not None and start.fixed < 0:
        start = None if dim is None else dim + start
    if start is None or end is None:
        return None
    length = end - start
    if dim is not None and length.fixed is not None and dim.fixed is not None:
        return OpenLength.of(max(0, min(length.fixed, dim.fixed)))
    return length


def _matmul(found: Shapes, node: onnx.NodeProto) -> None:
    left, right = found.of_input(node, 0), found.of_input(node, 1)
    if left is None or right is None or len(left) < 2 or len(right) < 2:
        return
    found.equal(left[-1], right[-2])
    batch = found.broadcast([left[:-2], right[:-2]])
    if batch is not None:
        found.dims[node.output[0]] = [*batch, left[-2], right[-1]]


def _gemm(found: Shapes, node: onnx.NodeProto) -> None:
    left, right = found.of_input(node, 0), found.of_input(node, 1)
    if left is None or right is None or len(left) != 2 or len(right) != 2:
        return
    rows, inner = left[::-1] if _attribute(node, "transA", 0) else left
    other, columns = right[::-1] if _attribute(node, "transB", 0) else right
    found.equal(inner, other)
    found.dims[node.output[0]] = [rows, columns]


def _reduce(found: Shapes, node: onnx.NodeProto) -> None:
    dims, axes = found.of_input(node, 0), _axes(found, node)
    if dims is None or axes is None:
        return
    places = {axis % len(dims) for axis in axes}
    kept = [ONE if i in places else dim for i, dim in enumerate(dims)]
    if not _attribute(node, "keepdims", 1):
        kept = [dim for i, dim in enumerate(dims) if i not in places]
    found.dims[node.output[0]] = kept


def _expand(found: Shapes, node: onnx.NodeProto) -> None:
    dims = found.broadcast([found.of_input(node, 0), found.numbers.get(node.input[1])])
    if dims is not None:
        found.dims[node.output[0]] = dims


def _filled(found: Shapes, node: onnx.NodeProto) -> None:
    dims = found.numbers.get(node.input[0])
    if dims is not None:
        found.dims[node.output[0]] = dims


def _split(found: Shapes, node: onnx.NodeProto) -> None:
    dims = found.of_input(node, 0)
    if dims is None:
        return
    axis = _attribute(node, "axis", 0) % len(dims)
    sizes = _integers(node, "split") or found.fixed(node, 1)
    whole = dims[axis]
    even = None if whole is None else whole.divided(len(node.output))
    for i, name in enumerate(node.output):
        part = OpenLength.of(sizes[i]) if sizes else even
        found.dims[name] = [*dims[:axis], part, *dims[axis + 1 :]]


def _per_channel(found: Shapes, node: onnx.NodeProto) -> None:
    """Operators with parameters along axis 1."""
    dims = found.of_input(node, 0)
    if dims is None or len(dims) < 2:
        return
    for i in range(1, len(node.input)):
        parameter = found.of_input(node, i)
        if parameter is not None and len(parameter) == 1:
            found.equal(dims[1], parameter[0])
    found.dims[node.output[0]] = dims


def _conv(found: Shapes, node: onnx.NodeProto) -> None:
    dims, weight = found.of_input(node, 0), found.of_input(node, 1)
    if dims is None or weight is None:
        return
    channels = weight[1]
    if channels is not None:
        found.equal(dims[1], channels.times(_attribute(node, "group", 1)))
    found.dims[node.output[0]] = [dims[0], weight[0], *[None] * (len(dims) - 2)]


RULES: dict[str, Callable[[Shapes, onnx.NodeProto], None]] = {
    **dict.fromkeys(
        (
            *("Abs", "Cast", "Ceil", "Clip", "Cos", "CumSum", "Dropout", "Elu", "Erf", "Exp"),
            *("Floor", "Gelu", "HardSigmoid", "HardSwish", "Identity", "LayerNormalization"),
            *("LeakyRelu", "Log", "LogSoftmax", "Neg", "Not", "Reciprocal", "Relu", "Round"),
            *("ScatterElements", "ScatterND", "Sigmoid", "Sin", "Softmax", "Softplus", "Sqrt"),
            *("Tanh", "Trilu"),
        ),
        _same,
    ),
    **dict.fromkeys(
        (
            *("Add", "And", "Div", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"),
            *("Max", "Min", "Mul", "Or", "Pow", "PRelu", "Sub", "Sum", "Where"),
        ),
        _elementwise,
    ),
    **dict.fromkeys(
        ("ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum", "ReduceL2"), _reduce
    ),
    **dict.fromkeys(("BatchNormalization", "InstanceNormalization"), _per_channel),
    "Concat": _concat,
    "Constant": _constant,
    "ConstantOfShape": _filled,
    "Conv": _conv,
    "Expand": _expand,
    "Flatten": _flatten,
    "Gather": _gather,
    "Gemm": _gemm,
    "MatMul": _matmul,
    "Reshape": _reshape,
    "Shape": _shape,
    "Slice": _slice,
    "Split": _split,
    "Squeeze": _squeeze,
    "Transpose": _transpose,
    "Unsqueeze": _unsqueeze,
}
