"""Operators that work on each element by itself."""

from __future__ import annotations

from functools import reduce

import numpy as np

from relayout.backends.litert.builder import BOOL
from relayout.backends.litert.call import LiteCall, LiteLowering
from relayout.backends.litert.flat_graph import FlatTensor
from relayout.backends.litert.lower.recognised import gelu_operand, hard_swish_operand


def unary(builtin: str) -> LiteLowering:
    return lambda call: call.build.unary(builtin, call.tensor(0))


def binary(builtin: str) -> LiteLowering:
    return lambda call: call.build.broadcasting(builtin, [call.tensor(0), call.tensor(1)])


def variadic(builtin: str) -> LiteLowering:
    def lower(call: LiteCall) -> FlatTensor:
        operands = [call.tensor(index) for index in range(len(call.operands))]
        return reduce(lambda one, other: call.build.broadcasting(builtin, [one, other]), operands)

    return lower


def comparison(builtin: str) -> LiteLowering:
    return lambda call: call.build.broadcasting(builtin, [call.tensor(0), call.tensor(1)], BOOL)


def mul(call: LiteCall) -> FlatTensor:
    """A product, or the activation that it is the last step of."""
    for builtin, operand in (
        ("GELU", gelu_operand(call.view.node)),
        ("HARD_SWISH", hard_swish_operand(call.view.node)),
    ):
        source = None if operand is None else call.build.values.get(operand)
        if source is not None and source.data is None:
            return call.build.unary(builtin, source)
    return call.build.broadcasting("MUL", [call.tensor(0), call.tensor(1)])


def div(call: LiteCall) -> FlatTensor:
    operand = hard_swish_operand(call.view.node)
    source = None if operand is None else call.build.values.get(operand)
    if source is not None and source.data is None:
        return call.build.unary("HARD_SWISH", source)
    left, right = call.tensor(0), call.tensor(1)
    if left.dtype.kind == "f":
        return call.build.broadcasting("DIV", [left, right])
    wide = left.dtype == np.dtype(np.int64)
    if wide:
        left, right = (call.build.cast(each, np.int32) for each in (left, right))
    result = call.build.broadcasting("DIV", [left, right])
    return call.build.cast(result, np.int64) if wide else result


def mod(call: LiteCall) -> FlatTensor:
    """The sign of ONNX's remainder is that of the divisor, unless it is C's fmod."""
    left, right = call.tensor(0), call.tensor(1)
    if not call.view.integer("fmod", 0):
        return call.build.broadcasting("FLOOR_MOD", [left, right])
    raise call.refusal("LiteRT has no remainder with the sign of the dividend")


def power(call: LiteCall) -> FlatTensor:
    base, exponent = call.tensor(0), call.known(1)
    build = call.build
    if exponent is not None and exponent.size == 1 and exponent.ndim <= base.rank:
        value = float(exponent.reshape(-1)[0])
        if value == 2.0 and base.dtype.kind == "f":
            return build.unary("SQUARE", base)
        if value == 1.0:
            return base
        if value == 0.5 and base.dtype.kind == "f":
            return build.unary("SQRT", base)
        if value == 3.0:
            return build.broadcasting("MUL", [build.broadcasting("MUL", [base, base]), base])
    return build.broadcasting("POW", [base, build.cast(call.tensor(1), base.dtype)])


def reciprocal(call: LiteCall) -> FlatTensor:
    """One divided by a tensor; of a root, in one step."""
    tensor = call.tensor(0)
    producer = call.view.node.inputs[0].producer() if call.view.node.inputs[0] else None
    if producer is not None and producer.op_type == "Sqrt" and producer.inputs[0] is not None:
        inner = call.build.values.get(producer.inputs[0])
        if inner is not None and inner.data is None:
            return call.build.unary("RSQRT", inner)
    return call.build.broadcasting("DIV", [call.build.scalar(1.0, tensor), tensor])


def where(call: LiteCall) -> FlatTensor:
    operands = [call.tensor(index) for index in range(3)]
    return call.build.broadcasting("SELECT_V2", operands, operands[1].dtype)


def cast(call: LiteCall) -> FlatTensor:
    tensor, kind = call.tensor(0), call.result_dtype()
    if kind == BOOL and tensor.dtype != BOOL:
        zero = call.build.scalar(0, tensor)
        return call.build.broadcasting("NOT_EQUAL", [tensor, zero], BOOL)
    return call.build.cast(tensor, kind)


def is_nan(call: LiteCall) -> FlatTensor:
    tensor = call.tensor(0)
    return call.build.broadcasting("NOT_EQUAL", [tensor, tensor], BOOL)


def sign(call: LiteCall) -> FlatTensor:
    return call.build.unary("SIGN", call.tensor(0))


def erf(call: LiteCall) -> FlatTensor:
    """By GELU: the sum of GELU(z) and GELU(-z) is z times the error function of z / √2."""
    build = call.build
    z = build.with_scalar("MUL", call.tensor(0), float(np.sqrt(2.0)))
    both = build.broadcasting(
        "ADD", [build.unary("GELU", z), build.unary("GELU", build.unary("NEG", z))]
    )
    is_zero = build.broadcasting("EQUAL", [z, build.scalar(0.0, z)], BOOL)
    divisor = build.broadcasting("SELECT_V2", [is_zero, build.scalar(1.0, z), z])
    return build.broadcasting("DIV", [both, divisor])


LOWERINGS: dict[str, LiteLowering] = {
    "Abs": unary("ABS"),
    "Add": binary("ADD"),
    "And": comparison("LOGICAL_AND"),
    "Cast": cast,
    "Ceil": unary("CEIL"),
    "Cos": unary("COS"),
    "Div": div,
    "Equal": comparison("EQUAL"),
    "Erf": erf,
    "Exp": unary("EXP"),
    "Floor": unary("FLOOR"),
    "Greater": comparison("GREATER"),
    "GreaterOrEqual": comparison("GREATER_EQUAL"),
    "IsNaN": is_nan,
    "Less": comparison("LESS"),
    "LessOrEqual": comparison("LESS_EQUAL"),
    "Log": unary("LOG"),
    "Max": variadic("MAXIMUM"),
    "Min": variadic("MINIMUM"),
    "Mod": mod,
    "Mul": mul,
    "Neg": unary("NEG"),
    "Not": unary("LOGICAL_NOT"),
    "Or": comparison("LOGICAL_OR"),
    "Pow": power,
    "Reciprocal": reciprocal,
    "Round": unary("ROUND"),
    "Sign": sign,
    "Sin": unary("SIN"),
    "Sqrt": unary("SQRT"),
    "Sub": binary("SUB"),
    "Sum": variadic("ADD"),
    "Where": where,
    "Xor": comparison("NOT_EQUAL"),
}
