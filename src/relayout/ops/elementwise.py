"""Operators that treat every element of one operand alike."""

from __future__ import annotations

from typing import TYPE_CHECKING

from relayout.layout.transport import Refusal, Transport
from relayout.ops.rule import OpRule, lead_only

if TYPE_CHECKING:
    from relayout.graph.read import NodeView
    from relayout.layout.permutation import Permutation

UNARY = (
    *("Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "BitCast", "BitwiseNot", "Ceil"),
    *("Celu", "Cos", "Cosh", "Elu", "Erf", "Exp", "Floor", "Gelu", "HardSigmoid", "HardSwish"),
    *("Identity", "IsInf", "IsNaN", "LeakyRelu", "Log", "Mish", "Neg", "Not", "Reciprocal"),
    *("RegexFullMatch", "Relu", "Round", "Selu", "Shrink", "Sigmoid", "Sign", "Sin", "Sinh"),
    *("Softplus", "Softsign", "Sqrt", "Swish", "Tan", "Tanh", "ThresholdedRelu"),
)


def dropout(view: NodeView, order: Permutation) -> Transport | Refusal:
    """The inference form is an identity with a mask; the training form draws by element order."""
    training = view.constant(2) if view.has(2) else None
    if view.has(2) and (training is None or bool(training.item())):
        return Refusal("Dropout in training mode draws its mask in element order")
    return lead_only(view, order)


def dynamic_quantize(view: NodeView, order: Permutation) -> Transport:
    """The scale and the zero point are scalars over the whole tensor."""
    return Transport((order,), (order, *(None,) * (view.results - 1)))


RULES = (
    OpRule(UNARY, lead_only),
    OpRule(("Cast", "CastLike", "Clip"), lead_only),
    OpRule(("Dropout",), dropout),
    OpRule(("DynamicQuantizeLinear",), dynamic_quantize),
)
