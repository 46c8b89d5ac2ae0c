"""What a rule says about an operator, and the answers most rules share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from relayout.graph.read import NodeView
from relayout.layout.permutation import AxisError, Permutation
from relayout.layout.transport import Changes, Refusal, Transport

TransportRule: TypeAlias = Callable[[NodeView, Permutation], Transport | Refusal]
PullRule: TypeAlias = Callable[[NodeView, Permutation], Permutation | Refusal]
LeadRule: TypeAlias = Callable[[NodeView], int]


def first_operand(_view: NodeView) -> int:
    return 0


def same_order(view: NodeView, result: Permutation) -> Permutation | Refusal:
    """The lead operand is stored like the first result, which has the same axes."""
    if view.rank(0) != result.rank:
        return Refusal(f"{view.op_type} changes the number of axes")
    return result


@dataclass(frozen=True, slots=True)
class Side:
    """An operand whose order can be chosen whatever the order of the others."""

    operand: int
    transport: TransportRule


@dataclass(frozen=True, slots=True)
class OpRule:
    """One rule says how an operator behaves when its lead operand is stored in another order.

    `transport` gives the restated node for an order of the lead operand, or refuses. `pull` gives
    an order of the lead operand for which result 0 comes out in a wanted order, or refuses.
    """

    op_types: tuple[str, ...]
    transport: TransportRule
    pull: PullRule = same_order
    lead: LeadRule = first_operand
    domain: str = ""
    sides: tuple[Side, ...] = ()
    """Operands besides the lead that have a say of their own: the factors of a product."""
    barrier: bool = False
    """Whether the rule refuses every order by choice."""


def ask(rule: OpRule, view: NodeView, order: Permutation) -> Transport | Refusal:
    """The answer of a rule to an order of the lead operand."""
    return _ask(rule.transport, view, rule.lead(view), order)


def ask_side(side: Side, view: NodeView, order: Permutation) -> Transport | Refusal:
    """The answer of a rule to an order of another operand."""
    return _ask(side.transport, view, side.operand, order)


def _ask(
    transport: TransportRule, view: NodeView, operand: int, order: Permutation
) -> Transport | Refusal:
    """The answer, after the questions that are the same for every operator."""
    if order.is_identity:
        return unchanged(view)
    if view.unknown_attribute is not None:
        return Refusal(f"{view.op_type}'s {view.unknown_attribute} is not known here")
    rank = view.rank(operand)
    if rank is None:
        return Refusal(f"the rank of {view.op_type}'s operand {operand} is unknown")
    if rank != order.rank:
        return Refusal(f"{view.op_type}'s operand {operand} has {rank} axes, not {order.rank}")
    try:
        return transport(view, order)
    except AxisError as error:
        return Refusal(f"{view.op_type} is not valid: {error}")


def unchanged(view: NodeView) -> Transport:
    return Transport((None,) * view.arity, (None,) * view.results)


def combined(answers: Sequence[Transport]) -> Transport:
    """Several answers about different operands of one node, taken together."""
    first, *rest = answers
    for other in rest:
        inputs = tuple(a or b for a, b in zip(first.inputs, other.inputs, strict=True))
        outputs = tuple(a or b for a, b in zip(first.outputs, other.outputs, strict=True))
        first = Transport(inputs, outputs, first.changes | other.changes)
    return first


def lead_only(view: NodeView, order: Permutation, changes: Changes | None = None) -> Transport:
    """Operand 0 and every result are stored in `order`; the other operands are as they were."""
    inputs = (order, *(None,) * (view.arity - 1))
    return Transport(inputs, (order,) * view.results, changes or Changes())


def barrier(*op_types: str, reason: str, domain: str = "") -> OpRule:
    """An operator that runs only as it stands, with the reason."""
    refusal = Refusal(reason)

    def refuse_transport(_view: NodeView, _order: Permutation) -> Refusal:
        return refusal

    def refuse_pull(_view: NodeView, _order: Permutation) -> Refusal:
        return refusal

    return OpRule(op_types, refuse_transport, refuse_pull, domain=domain, barrier=True)
