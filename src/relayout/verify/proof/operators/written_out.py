"""Activations and normalisations as the steps that define them.

Where rounding may change, such an operator is what its definition makes of it, so that it meets
models in which an exporter, or another tool, wrote the steps out.
"""

from __future__ import annotations

from collections.abc import Callable
from math import pi, sqrt

import numpy as np

from relayout.verify.proof.call import NodeCall, Rule
from relayout.verify.proof.operators import elementwise, normalizations
from relayout.verify.proof.operators.contractions import gemm
from relayout.verify.proof.operators.linear import added, multiplied
from relayout.verify.proof.table import NotKnownError, TermValue
from relayout.verify.proof.views import array_of, unsqueezed

Definition = Callable[[NodeCall, TermValue], TermValue]
"""From the first operand to the result."""

CONTRIB = "com.microsoft"
ACTIVATIONS = "activations written out"
NORMALISATIONS = "normalisations written out"
# The factor of the cube in the usual approximation of Gelu by tanh.
CUBE = 0.044715
STATISTICS = slice(1, 3)
"""The results of a Skip normalisation that training asks for."""


def _activation(name: str, definition: Definition) -> Rule:
    def rule(call: NodeCall) -> list[TermValue]:
        if call.table.step(ACTIVATIONS):
            return [definition(call, call.operand(0))]
        key = (name, call.settings())
        return [elementwise.elementwise(call.table, key, call.present())]

    return rule


def _normalisation(definition: Definition) -> Rule:
    def rule(call: NodeCall) -> list[TermValue]:
        normalizations.one_result(call)
        if call.table.step(NORMALISATIONS):
            return [definition(call, call.operand(0))]
        return normalizations.layer(call)

    return rule


def _times(call: NodeCall, value: TermValue, factor: float) -> TermValue:
    return call.apply("Mul", value, call.number(factor))


def _exact_gelu(call: NodeCall, value: TermValue) -> TermValue:
    normal = call.apply("Erf", _times(call, value, sqrt(0.5)))
    weight = call.apply("Add", normal, call.number(1.0))
    return _times(call, call.apply("Mul", value, weight), 0.5)


def _tanh_gelu(call: NodeCall, value: TermValue) -> TermValue:
    cube = call.apply("Mul", call.apply("Mul", value, value), value)
    inner = call.apply("Add", value, _times(call, cube, CUBE))
    normal = call.apply("Tanh", _times(call, inner, sqrt(2 / pi)))
    weight = call.apply("Add", normal, call.number(1.0))
    return _times(call, call.apply("Mul", value, weight), 0.5)


def _gelu(call: NodeCall, value: TermValue) -> TermValue:
    by_tanh = call.text("approximate", "none") == "tanh"
    return _tanh_gelu(call, value) if by_tanh else _exact_gelu(call, value)


def _with_bias(definition: Definition) -> Definition:
    def biased(call: NodeCall, value: TermValue) -> TermValue:
        bias = call.optional(1)
        return definition(call, value if bias is None else call.apply("Add", value, bias))

    return biased


def _swish(alpha: float) -> Definition:
    def swish(call: NodeCall, value: TermValue) -> TermValue:
        factor = float(call.attribute("alpha", alpha))
        return call.apply("Mul", value, call.apply("Sigmoid", _times(call, value, factor)))

    return swish


def _hard_swish(call: NodeCall, value: TermValue) -> TermValue:
    return call.apply("Mul", value, call.apply("HardSigmoid", value, alpha=1 / 6, beta=0.5))


def _mish(call: NodeCall, value: TermValue) -> TermValue:
    return call.apply("Mul", value, call.apply("Tanh", call.apply("Softplus", value)))


def _layer(call: NodeCall, value: TermValue) -> TermValue:
    return layer_normalised(call, value, call.operand(1), call.optional(2))


def layer_normalised(
    call: NodeCall, value: TermValue, scale: TermValue, bias: TermValue | None
) -> TermValue:
    axes = list(range(call.axis("axis", -1, value.rank), value.rank))
    mean = call.apply("ReduceMean", value, axes=axes, keepdims=1)
    around = call.apply("Sub", value, mean)
    return _by_root_mean_square(call, around, axes, scale, bias)


def _root_mean_square(call: NodeCall, value: TermValue) -> TermValue:
    axes = list(range(call.axis("axis", -1, value.rank), value.rank))
    return _by_root_mean_square(call, value, axes, call.operand(1), None)


def _by_root_mean_square(
    call: NodeCall,
    value: TermValue,
    axes: list[int],
    scale: TermValue,
    bias: TermValue | None,
) -> TermValue:
    """The value by the root of its mean square, scaled and biased."""
    square = call.apply("ReduceMean", call.apply("Mul", value, value), axes=axes, keepdims=1)
    epsilon = call.number(float(call.attribute("epsilon", EPSILON[call.node.domain])))
    root = call.apply("Sqrt", call.apply("Add", square, epsilon))
    result = call.apply("Mul", call.apply("Div", value, root), scale)
    return result if bias is None else call.apply("Add", result, bias)


EPSILON = {"": 1e-5, "ai.onnx": 1e-5, CONTRIB: 1e-12}
"""What is added to a mean square unless a node says otherwise, by domain."""


def _skip(call: NodeCall) -> list[TermValue]:
    """The sum of two operands and a bias, normalised; the sum is a result too."""
    if any(call.node.output[STATISTICS]):
        raise NotKnownError(f"{call.node.op_type} with statistics")
    simplified = call.node.op_type == "SkipSimplifiedLayerNormalization"
    beta, bias = (None, call.optional(3)) if simplified else (call.optional(3), call.optional(4))
    total = call.apply("Add", call.operand(0), call.operand(1))
    total = total if bias is None else call.apply("Add", total, bias)
    if not call.table.step(NORMALISATIONS):
        raise NotKnownError(f"{call.node.op_type}, which changes rounding")
    scale = call.operand(2)
    if simplified:
        result = _by_root_mean_square(call, total, [total.rank - 1], scale, None)
    else:
        result = layer_normalised(call, total, scale, beta)
    return [result, total, total, total]


def _batch(call: NodeCall) -> list[TermValue]:
    """A factor and a bias for each channel, if all parameters are constants."""
    plain = elementwise.batch_normalization(call)
    parameters = [call.operand(i) for i in range(1, 5)]
    known = all(value.term in call.table.arrays for value in parameters)
    if not known or not call.table.step(NORMALISATIONS):
        return plain
    arrays = [array_of(call.table, value) for value in parameters]
    scale, bias, mean, variance = (array.astype(np.float64) for array in arrays)
    with np.errstate(invalid="ignore", divide="ignore"):
        factor = scale / np.sqrt(variance + call.attribute("epsilon", EPSILON[""]))
        parts = (factor, bias - mean * factor)
    if not np.isfinite(parts).all():
        # What is left of a difference of infinities does not say what they were made of.
        return plain
    value = call.operand(0)
    factors, biases = (unsqueezed(call.constant(part), range(1, value.rank - 1)) for part in parts)
    return [added(call.table, [multiplied(call.table, [value, factors]), biases])]


def _fused_gemm(call: NodeCall) -> list[TermValue]:
    result = gemm(call)[0]
    name = call.text("activation")
    given = {"activation_alpha": "alpha", "activation_beta": "beta", "activation_gamma": "gamma"}
    found = {new: call.attribute(old) for old, new in given.items()}
    attributes = {new: value for new, value in found.items() if value is not None}
    return [call.apply(name, result, **attributes) if name else result]


RULES: dict[tuple[str, str], Rule] = {
    ("", "Gelu"): _activation("Gelu", _gelu),
    (CONTRIB, "Gelu"): _activation("Gelu", _exact_gelu),
    (CONTRIB, "BiasGelu"): _activation("BiasGelu", _with_bias(_exact_gelu)),
    (CONTRIB, "FastGelu"): _activation("FastGelu", _with_bias(_tanh_gelu)),
    (CONTRIB, "QuickGelu"): _activation("QuickGelu", _swish(1.702)),
    ("", "Swish"): _activation("Swish", _swish(1.0)),
    ("", "HardSwish"): _activation("HardSwish", _hard_swish),
    ("", "Mish"): _activation("Mish", _mish),
    ("", "LayerNormalization"): _normalisation(_layer),
    ("", "RMSNormalization"): _normalisation(_root_mean_square),
    ("", "SimplifiedLayerNormalization"): _normalisation(_root_mean_square),
    (CONTRIB, "SkipLayerNormalization"): _skip,
    (CONTRIB, "SkipSimplifiedLayerNormalization"): _skip,
    ("", "BatchNormalization"): _batch,
    (CONTRIB, "FusedGemm"): _fused_gemm,
}
