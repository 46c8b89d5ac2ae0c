"""Rules of operators for other orders of their operands, and the answers most rules share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from relayout.graph.read import NodeView
from relayout.layout.permutation import AxisError, Permutation
from relayout.layout.transport import AS_GIVEN, Changes, Refusal, Transport

TransportRule: TypeAlias = Callable[[NodeView, Permutation], Transport | Refusal]
PullRule: TypeAlias = Callable[[NodeView, Permutation], Permutation | Refusal]
LeadRule: TypeAlias = Callable[[NodeView], int]
WantedRule: TypeAlias = Callable[[NodeView], Permutation | None]
Orders: TypeAlias = Sequence[Permutation | None]
SeparateRule: TypeAlias = Callable[[NodeView, Orders, Permutation | None], Transport | Refusal]
JointRule: TypeAlias = Callable[[NodeView, int, Permutation], Sequence[Transport]]


def first_operand(_view: NodeView) -> int:
    return 0


def same_order(view: NodeView, result: Permutation) -> Permutation | Refusal:
    """The lead operand is stored like the first result, which has the same axes."""
    if view.rank(0) != result.rank:
        return Refusal(f"{view.op_type} changes the number of axes")
    return result


def nothing_joint(_view: NodeView, _operand: int, _order: Permutation) -> Sequence[Transport]:
    return ()


def nothing_wanted(_view: NodeView) -> Permutation | None:
    return None


@dataclass(frozen=True, slots=True)
class OpRule:
    """How an operator runs when its lead operand is stored in another order.

    `transport` gives the restated node for an order of the lead operand, or refuses. `pull` gives
    an order of the lead operand for which result 0 comes out in a wanted order, but for axes of
    length 1, or refuses.
    """

    transport: TransportRule
    pull: PullRule = same_order
    lead: LeadRule = first_operand
    joint: JointRule = nothing_joint
    """The forms worth trying for an order of one operand, if operands have orders of their own."""
    separate: SeparateRule | None = None
    """The node with every operand, and its only result, in an order of its own."""
    wanted: WantedRule = nothing_wanted
    """The order of the lead operand for which the target has a kernel, where it has no other."""
    barrier: bool = False
    """Whether the rule refuses every order of the lead operand by choice."""


def ask(rule: OpRule, view: NodeView, order: Permutation) -> Transport | Refusal:
    """The answer of a rule to an order of the lead operand."""
    if order.is_identity:
        return unchanged(view)
    refusal = _unfit(view, rule.lead(view), order)
    if refusal is not None:
        return refusal
    try:
        return rule.transport(view, order)
    except AxisError as error:
        return Refusal(f"{view.op_type} is not valid: {error}")


def ask_joint(
    rule: OpRule, view: NodeView, operand: int, order: Permutation
) -> Sequence[Transport]:
    """The restated nodes worth trying for an order of any operand."""
    is_fit = not order.is_identity and _unfit(view, operand, order) is None
    return rule.joint(view, operand, order) if is_fit else ()


def ask_separate(
    rule: OpRule, view: NodeView, inputs: Orders, result: Permutation | None
) -> Transport | Refusal:
    """The answer of a rule to an order for every operand and for the result."""
    if rule.separate is None or view.unknown_attribute is not None:
        return Refusal(f"{view.op_type} has no form with every operand in an order of its own")
    asked = [(index, order) for index, order in enumerate(inputs) if order is not None]
    refusals = [_unfit(view, index, order) for index, order in asked]
    refusal = next(filter(None, refusals), None)
    return refusal or rule.separate(view, inputs, result)


def _unfit(view: NodeView, operand: int, order: Permutation) -> Refusal | None:
    """Why a rule cannot be asked about an order of an operand."""
    if view.unknown_attribute is not None:
        return Refusal(f"{view.op_type}'s {view.unknown_attribute} is not known here")
    rank = view.rank(operand)
    if rank is None:
        return Refusal(f"the rank of {view.op_type}'s operand {operand} is unknown")
    if rank != order.rank:
        return Refusal(f"{view.op_type}'s operand {operand} has {rank} axes, not {order.rank}")
    return None


def unchanged(view: NodeView) -> Transport:
    return Transport((None,) * view.arity, (None,) * view.results)


def lead_only(view: NodeView, order: Permutation, changes: Changes = AS_GIVEN) -> Transport:
    """Operand 0 and every result are stored in `order`; the other operands are as they were."""
    inputs = (order, *(None,) * (view.arity - 1))
    return Transport(inputs, (order,) * view.results, changes)


def barrier(reason: str) -> OpRule:
    """The rule of an operator that runs only in the given order, with the reason."""
    refusal = Refusal(reason)

    def refuse(_view: NodeView, _order: Permutation) -> Refusal:
        return refusal

    return OpRule(refuse, refuse, barrier=True)


def _nothing_known(view: NodeView, _order: Permutation) -> Refusal:
    domain, op_type = view.node.domain, view.node.op_type
    name = f"{domain}.{op_type}" if domain else op_type
    return Refusal(f"nothing is known about operator {name}")


NOTHING_KNOWN = OpRule(_nothing_known, _nothing_known, barrier=True)
"""The rule of an operator that has none."""
