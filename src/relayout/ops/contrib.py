"""Operators of ONNX Runtime's own domain: activations, and those that quantisers write."""

from __future__ import annotations

from typing import TYPE_CHECKING

from relayout.layout.blocks import size_of
from relayout.layout.transport import Changes, Refusal, Transport
from relayout.ops.broadcasting import aligned
from relayout.ops.elementwise import COSTLY, elementwise
from relayout.ops.facts import LengthFacts, NumberFacts, OpFacts
from relayout.ops.rule import OpRule, barrier, lead_only
from relayout.ops.shuffles import following, gemm_of_bytes, one_by_one

if TYPE_CHECKING:
    from collections.abc import Sequence

    from relayout.graph.read import Dim, NodeView
    from relayout.layout.permutation import Permutation
    from relayout.ops.lengths.entries import Entries, Known

DOMAIN = "com.microsoft"

TERMS = (0, 3)
"""The two operands of a quantised sum or product; scale and zero point follow each."""

FIRST_PART = 2
"""The index of the first part of a quantised Concat; scale and zero point follow each."""

FULL_AXIS_SINCE = 13
"""From this opset on Softmax has one axis; before it takes all axes from there on together."""


def wider_term(view: NodeView) -> int:
    left, right = (view.rank(index) or 0 for index in TERMS)
    return TERMS[0] if left >= right else TERMS[1]


def quantised_pair(view: NodeView, order: Permutation) -> Transport | Refusal:
    """Both terms are broadcast; every scale is one number."""
    inputs: list[Permutation | None] = [None] * view.arity
    unsqueezes = {}
    for index in TERMS:
        rank = view.rank(index)
        if rank is None:
            return Refusal(f"the rank of {view.op_type}'s operand {index} is unknown")
        inputs[index], unit_axes = aligned(rank, order)
        unsqueezes.update({index: unit_axes} if unit_axes else {})
    return Transport(tuple(inputs), (order,), Changes(unsqueezes=unsqueezes))


def pull_quantised_pair(view: NodeView, result: Permutation) -> Permutation | Refusal:
    if view.rank(wider_term(view)) != result.rank:
        return Refusal(f"{view.op_type} has no operand of {result.rank} axes")
    return result


def first_part(_view: NodeView) -> int:
    return FIRST_PART


def quantised_concat(view: NodeView, order: Permutation) -> Transport | Refusal:
    parts = range(FIRST_PART, view.arity, 3)
    if any(view.rank(index) != order.rank for index in parts):
        return Refusal("QLinearConcat has parts of unknown rank")
    inputs = tuple(order if index in parts else None for index in range(view.arity))
    axis = order.position(view.integer("axis", 0))
    return Transport(inputs, (order,), Changes({"axis": axis}))


def pull_quantised_concat(view: NodeView, result: Permutation) -> Permutation | Refusal:
    if view.rank(FIRST_PART) != result.rank:
        return Refusal("QLinearConcat has parts of unknown rank")
    return result


def joined_lengths(view: NodeView, _known: Known) -> Entries | None:
    """The lengths of a quantised Concat: those of its parts, added up along one axis."""
    shapes = [view.shape(index) for index in range(FIRST_PART, view.arity, 3)]
    parts = [shape for shape in shapes if shape is not None]
    ranks = {len(part) for part in parts}
    if not parts or len(parts) < len(shapes) or len(ranks) > 1 or 0 in ranks:
        return None
    axis = view.integer("axis", 0) % ranks.pop()
    numbers = [length for part in parts if isinstance(length := part[axis], int)]
    lengths = [_first_number(side) for side in zip(*parts, strict=True)]
    lengths[axis] = sum(numbers) if len(numbers) == len(parts) else None
    return tuple(None if length is None else size_of(length) for length in lengths)


def _first_number(lengths: Sequence[Dim]) -> Dim:
    """What is known of lengths that are the same."""
    return next((length for length in lengths if isinstance(length, int)), lengths[0])


def quantised_softmax(view: NodeView, order: Permutation) -> Transport | Refusal:
    axis = view.integer("axis", -1) % order.rank
    if view.integer("opset", 0) >= FULL_AXIS_SINCE:
        return lead_only(view, order, Changes({"axis": order.position(axis)}))
    if not order.fixes(*range(axis, order.rank)):
        return Refusal("QLinearSoftmax before opset 13 works on all trailing axes together")
    return lead_only(view, order)


def _terms(_view: NodeView) -> tuple[int, ...]:
    return TERMS


SAME_SHAPE = LengthFacts(keeps_shape=True)
QUANTISES = NumberFacts(quantises=True)

FACTS: tuple[OpFacts, ...] = (
    elementwise("Gelu", "QuickGelu", domain=DOMAIN, kernel=COSTLY),
    OpFacts(
        ("QLinearAdd", "QLinearMul"),
        OpRule(quantised_pair, pull_quantised_pair, wider_term),
        DOMAIN,
        lengths=LengthFacts(broadcast=_terms),
    ),
    OpFacts(
        ("QLinearLeakyRelu", "QLinearSigmoid"),
        OpRule(lead_only),
        DOMAIN,
        lengths=SAME_SHAPE,
        shuffles=following(one_by_one),
    ),
    OpFacts(
        ("QLinearConcat",),
        OpRule(quantised_concat, pull_quantised_concat, first_part),
        DOMAIN,
        lengths=LengthFacts(shape=joined_lengths),
    ),
    OpFacts(("QLinearSoftmax",), OpRule(quantised_softmax), DOMAIN, lengths=SAME_SHAPE),
    OpFacts(("NhwcMaxPool", "QLinearAveragePool", "QLinearGlobalAveragePool"), domain=DOMAIN),
    OpFacts(("QLinearConv",), domain=DOMAIN, numbers=QUANTISES),
    OpFacts(
        ("QGemm",),
        barrier("a product of bytes with transposes of its own, known to one runtime only"),
        DOMAIN,
        numbers=QUANTISES,
        shuffles=following(gemm_of_bytes),
    ),
    OpFacts(("QuantizeLinear",), domain=DOMAIN, numbers=QUANTISES, computes_only=False),
)
