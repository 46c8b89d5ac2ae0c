"""Shapes of what is computed element by element, and arithmetic on lengths."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
from onnx import helper, numpy_helper

from relayout.verify.proof.lengths import Length, minus, plus, quotient, times
from relayout.verify.shapes.symbolic import OpenShape, Shapes, attribute


def constant(found: Shapes, node: onnx.NodeProto) -> None:
    for one in node.attribute:
        if one.name == "value":
            found.add_constant(node.output[0], one.t)
        elif one.name in ("value_int", "value_ints"):
            array = np.asarray(helper.get_attribute_value(one), np.int64)
            found.add_constant(node.output[0], numpy_helper.from_array(array))


def shape(found: Shapes, node: onnx.NodeProto) -> None:
    dims = found.of_input(node, 0)
    if dims is None:
        return
    part = slice(attribute(node, "start", 0), attribute(node, "end", len(dims)))
    found.numbers[node.output[0]] = dims[part]
    found.dims[node.output[0]] = [len(dims[part])]


def same(found: Shapes, node: onnx.NodeProto) -> None:
    """The shape of the first operand."""
    dims = found.of_input(node, 0)
    if dims is not None:
        found.dims[node.output[0]] = dims


def copied(found: Shapes, node: onnx.NodeProto) -> None:
    """The shape and the numbers of the first operand."""
    same(found, node)
    numbers = found.numbers_of(node, 0)
    if numbers is not None:
        found.numbers[node.output[0]] = numbers


def quantised(found: Shapes, node: onnx.NodeProto) -> None:
    """The shape of the first operand; a scale for all, for each place of an axis, or a block."""
    same(found, node)
    dims = found.of_input(node, 0)
    axis, block = attribute(node, "axis", 1), attribute(node, "block_size", 0)
    for i in (1, 2):
        scale = found.of_input(node, i)
        if not dims or scale is None:
            continue
        if block and len(scale) == len(dims):
            _in_blocks(found, dims, scale, axis % len(dims), block)
        elif len(scale) == 1 and scale != [1]:
            found.equal(dims[axis % len(dims)], scale[0])


def _in_blocks(found: Shapes, dims: OpenShape, scale: OpenShape, axis: int, block: int) -> None:
    """States how many scales there are; an open length is taken for one of whole blocks."""
    found.same(scale, [scale[i] if i == axis else dim for i, dim in enumerate(dims)])
    length, count = dims[axis], scale[axis]
    if isinstance(length, int):
        found.equal(count, -(-length // block))
    elif count is not None:
        found.equal(length, times(count, block))


def elementwise(found: Shapes, node: onnx.NodeProto) -> None:
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


ARITHMETIC: dict[str, Callable[[Length, Length], Length | None]] = {
    "Add": plus,
    "Sub": minus,
    "Mul": times,
    "Div": quotient,
}
UNARY = frozenset(
    (
        *("Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "BitwiseNot"),
        *("Ceil", "Celu", "Clip", "Cos", "Cosh", "CumSum", "Dropout", "Elu", "Erf"),
        *("Exp", "EyeLike", "Floor", "Gelu", "HardSigmoid", "HardSwish", "Hardmax"),
        *("IsInf", "IsNaN", "LRN", "LeakyRelu", "Log", "LogSoftmax", "LpNormalization"),
        *("MeanVarianceNormalization", "Mish", "Neg", "Not", "RandomNormalLike"),
        *("RandomUniformLike", "Reciprocal", "Relu", "ReverseSequence", "Round"),
        *("ScatterElements", "ScatterND", "Selu", "Shrink", "Sigmoid", "Sign", "Sin", "Sinh"),
        *("Softmax", "Softplus", "Softsign", "Sqrt", "Swish", "Tan", "Tanh", "ThresholdedRelu"),
        *("Trilu",),
    )
)
BROADCAST = frozenset(
    (
        *("Add", "And", "BitShift", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Div", "Equal"),
        *("Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Max", "Mean", "Min", "Mod", "Mul"),
        *("Or", "PRelu", "Pow", "Sub", "Sum", "Where", "Xor"),
    )
)
RULES: dict[str, Callable[[Shapes, onnx.NodeProto], None]] = {
    **dict.fromkeys(UNARY, same),
    **dict.fromkeys(BROADCAST, elementwise),
    **dict.fromkeys(("Cast", "CastLike", "Identity"), copied),
    **dict.fromkeys(("QuantizeLinear", "DequantizeLinear"), quantised),
    "Constant": constant,
    "Shape": shape,
}
