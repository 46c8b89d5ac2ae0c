"""Operators that treat every element of one operand alike."""

from __future__ import annotations

from typing import TYPE_CHECKING

from relayout.layout.splitting import AxisMap
from relayout.layout.transport import Refusal, Transport
from relayout.ops import axis_maps
from relayout.ops.facts import (
    CARRIES,
    Evaluation,
    LengthFacts,
    NumberFacts,
    OpFacts,
    Storage,
)
from relayout.ops.kernels import ELEMENTWISE, OPAQUE, KernelFacts
from relayout.ops.kind import Kind
from relayout.ops.lengths import entries
from relayout.ops.rule import OpRule, lead_only

if TYPE_CHECKING:
    from relayout.graph.read import NodeView
    from relayout.layout.permutation import Permutation


def dropout(view: NodeView, order: Permutation) -> Transport | Refusal:
    """The inference form is an identity with a mask; the training form draws by element order."""
    return lead_only(view, order) if _is_inference(view) else DRAWS


def dropout_axes(view: NodeView) -> AxisMap | Refusal:
    return axis_maps.one_by_one(view) if _is_inference(view) else DRAWS


DRAWS = Refusal("Dropout in training mode draws its mask in element order")


def _is_inference(view: NodeView) -> bool:
    training = view.constant(2) if view.has(2) else None
    return not view.has(2) or (training is not None and not bool(training.item()))


def dynamic_quantize(view: NodeView, order: Permutation) -> Transport:
    """The scale and the zero point are scalars over the whole tensor."""
    return Transport((order,), (order, *(None,) * (view.results - 1)))


def elementwise(
    *op_types: str,
    domain: str = "",
    kernel: KernelFacts = ELEMENTWISE,
    lengths: LengthFacts | None = None,
    numbers: NumberFacts | None = None,
    storage: Storage | None = None,
) -> OpFacts:
    """Operators that do the same to every element of operand 0; other operands are parameters."""
    return OpFacts(
        op_types,
        OpRule(lead_only),
        domain,
        kernel,
        CARRIES,
        axis_maps.one_by_one,
        lengths or LengthFacts(keeps_shape=True),
        numbers or NumberFacts(),
        storage=storage,
        by_element=True,
    )


COSTLY = KernelFacts(Kind.ELEMENTWISE, is_costly=True)
EXACT = KernelFacts(Kind.ELEMENTWISE, is_exact=True)
ACTIVATES = NumberFacts(activates=True)
ON_INTEGERS = NumberFacts(Evaluation.INTEGERS)
SAME_ENTRIES = LengthFacts(entries.same, keeps_shape=True)


def _clip_kind(view: NodeView) -> Kind:
    """A bound that is computed is an operand like others."""
    is_fixed = all(not view.has(place) or view.is_constant(place) for place in (1, 2))
    return Kind.ELEMENTWISE if is_fixed else Kind.BROADCAST


def _dropout_kind(view: NodeView) -> Kind:
    """An identity at inference."""
    return Kind.ELEMENTWISE if _is_inference(view) else Kind.OPAQUE


UNARY = (
    elementwise(
        *("Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Celu", "Cos", "Cosh", "Elu", "Erf"),
        *("Exp", "Gelu", "Log", "Mish", "Reciprocal", "Selu", "Sin", "Sinh", "Softplus"),
        *("Softsign", "Swish", "Tan"),
        kernel=COSTLY,
    ),
    elementwise("Sqrt", kernel=COSTLY, numbers=NumberFacts(Evaluation.ROUNDED)),
    elementwise("Sigmoid", "Tanh", kernel=COSTLY, numbers=ACTIVATES),
    elementwise(
        *("BitCast", "HardSwish", "IsInf", "IsNaN", "Shrink", "ThresholdedRelu"),
    ),
    elementwise("BitwiseNot", "Ceil", "Floor", "Round", numbers=ON_INTEGERS),
    elementwise("HardSigmoid", "LeakyRelu", numbers=ACTIVATES),
    elementwise("Relu", kernel=EXACT, numbers=ACTIVATES),
    elementwise("Abs", "Neg", "Not", "Sign", kernel=EXACT, numbers=ON_INTEGERS),
    elementwise(
        "Identity",
        kernel=KernelFacts(Kind.ELEMENTWISE, is_view=True, is_exact=True),
        lengths=SAME_ENTRIES,
        numbers=NumberFacts(Evaluation.MOVES),
        storage=Storage.PART,
    ),
    elementwise("RegexFullMatch", kernel=OPAQUE),
)
"""Operators of one operand."""

FACTS = (
    *UNARY,
    elementwise("Cast", kernel=EXACT, lengths=SAME_ENTRIES, numbers=ON_INTEGERS),
    elementwise(
        "CastLike",
        kernel=KernelFacts(Kind.ELEMENTWISE, (1,), is_exact=True),
        numbers=ON_INTEGERS,
    ),
    elementwise("Clip", kernel=KernelFacts(_clip_kind, (1, 2)), numbers=ACTIVATES),
    OpFacts(
        ("Dropout",),
        OpRule(dropout),
        kernel=KernelFacts(_dropout_kind, (1, 2)),
        layout=CARRIES,
        axes=dropout_axes,
        storage=Storage.PART,
    ),
    OpFacts(
        ("DynamicQuantizeLinear",),
        OpRule(dynamic_quantize),
        kernel=OPAQUE,
        layout=CARRIES,
        numbers=NumberFacts(quantises=True),
    ),
)
