"""Functions of single elements: by their definition where it is arithmetic, else hashes."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from relayout.verify.field.hashing import hashed, hashed_along
from relayout.verify.field.operators.arithmetic import largest, least
from relayout.verify.field.residues import added, encoded, inverted, multiplied, subtracted, summed

if TYPE_CHECKING:
    from relayout.verify.field.call import FieldCall, FieldKernel
    from relayout.verify.field.residues import Residues
    from relayout.verify.field.values import FieldTensor

ZERO = np.zeros((), np.int64)
ONE = np.ones((), np.int64)
FULL_AXIS_SINCE = 13

# Functions of one element and no attribute: the name is the key.
PLAIN = (
    *("Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Cos", "Cosh", "Sin", "Sinh", "Tan"),
    *("Tanh", "Ceil", "Floor", "Round", "Erf", "Exp", "Log", "Sigmoid", "Sign", "Softplus"),
    *("Softsign", "Sqrt", "Mish", "BitwiseNot"),
)
# Functions whose attributes are a part of the key, with their defaults.
PARAMETERS: dict[str, dict[str, float | str]] = {
    "Elu": {"alpha": 1.0},
    "Celu": {"alpha": 1.0},
    "Selu": {"alpha": 1.67326319217681884765625, "gamma": 1.05070102214813232421875},
    "ThresholdedRelu": {"alpha": 1.0},
    "Shrink": {"bias": 0.0, "lambd": 0.5},
    "Gelu": {"approximate": "none"},
}


def function(call: FieldCall, name: str, *numbers: Residues) -> Residues:
    """A function of elements by its name alone."""
    return hashed(call.key(name), np.broadcast_arrays(*numbers))


def plain(call: FieldCall) -> FieldTensor:
    return call.like(function(call, call.op_type, call.residues(0)))


def parametrised(call: FieldCall) -> FieldTensor:
    defaults = PARAMETERS[call.op_type]
    stated = [call.attributes.get(name, default) for name, default in defaults.items()]
    rounded = [each if isinstance(each, str) else float(np.float32(each)) for each in stated]
    return call.like(hashed(call.key(call.op_type, *rounded), [call.residues(0)]))


def relu(call: FieldCall) -> FieldTensor:
    return call.like(largest(call, call.residues(0), ZERO))


def sloped(call: FieldCall, slope: Residues | int) -> FieldTensor:
    """Above 0 the number, below it times a slope."""
    numbers = call.residues(0)
    above = largest(call, numbers, ZERO)
    below = subtracted(numbers, above)
    return call.like(added(above, multiplied(below, slope)))


def leaky_relu(call: FieldCall) -> FieldTensor:
    return sloped(call, call.encoded("alpha", 0.01))


def prelu(call: FieldCall) -> FieldTensor:
    return sloped(call, call.residues(1))


def clip(call: FieldCall) -> FieldTensor:
    """min(max(x, low), high), each only if it is given and finite."""
    numbers = call.residues(0)
    for place, name, bound in ((1, "min", largest), (2, "max", least)):
        if name in call.attributes:
            numbers = bound(call, numbers, np.asarray(call.encoded(name, 0.0)))
        elif call.has(place):
            numbers = bound(call, numbers, call.residues(place))
    return call.like(numbers)


def hard_sigmoid(call: FieldCall) -> FieldTensor:
    return call.like(_hard_sigmoid(call, call.encoded("alpha", 0.2), call.encoded("beta", 0.5)))


def _hard_sigmoid(call: FieldCall, alpha: int, beta: int) -> Residues:
    line = added(multiplied(call.residues(0), alpha), beta)
    return largest(call, ZERO, least(call, ONE, line))


def hard_swish(call: FieldCall) -> FieldTensor:
    sixth = int(encoded(np.array(1 / 6, np.float32)))
    half = int(encoded(np.array(0.5, np.float32)))
    return call.like(multiplied(call.residues(0), _hard_sigmoid(call, sixth, half)))


def swish(call: FieldCall) -> FieldTensor:
    numbers = call.residues(0)
    scaled = multiplied(numbers, call.encoded("alpha", 1.0))
    return call.like(multiplied(numbers, function(call, "Sigmoid", scaled)))


def softmax(call: FieldCall, numbers: Residues, axes: tuple[int, ...]) -> Residues:
    """exp(x - m) / sum(exp(x - m)) where m is the largest; exp and m are hashes."""
    exponentials = function(call, "Exp", _below_largest(call, numbers, axes))
    return multiplied(exponentials, inverted(summed(exponentials, axes, keep=True)))


def _below_largest(call: FieldCall, numbers: Residues, axes: tuple[int, ...]) -> Residues:
    """Less the largest along axes, which of one element is the element."""
    if math.prod(numbers.shape[axis] for axis in axes) == 1:
        return np.zeros_like(numbers)
    return subtracted(numbers, hashed_along(call.key("Max"), numbers, axes, keep=True))


def _softmax_node(call: FieldCall, *, logarithm: bool) -> FieldTensor:
    numbers = call.residues(0)
    since_13 = call.version >= FULL_AXIS_SINCE
    axis = call.integer("axis", -1 if since_13 else 1) % max(numbers.ndim, 1)
    axes = (axis,) if since_13 else tuple(range(axis, numbers.ndim))
    if not logarithm:
        return call.like(softmax(call, numbers, axes))
    centred = _below_largest(call, numbers, axes)
    total = summed(function(call, "Exp", centred), axes, keep=True)
    return call.like(subtracted(centred, function(call, "Log", total)))


KERNELS: dict[str, FieldKernel] = {
    **dict.fromkeys(PLAIN, plain),
    **dict.fromkeys(PARAMETERS, parametrised),
    "Relu": relu,
    "LeakyRelu": leaky_relu,
    "PRelu": prelu,
    "Clip": clip,
    "HardSigmoid": hard_sigmoid,
    "HardSwish": hard_swish,
    "Swish": swish,
    "Softmax": partial(_softmax_node, logarithm=False),
    "LogSoftmax": partial(_softmax_node, logarithm=True),
}
