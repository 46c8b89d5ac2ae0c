"""The ways in which one node can run, found by asking its rule."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import prod

import onnx_ir as ir

from relayout.graph.read import NodeView, constant_of, shape_of
from relayout.graph.region import Region, captured_by
from relayout.layout.permutation import Permutation
from relayout.layout.shuffle import Shuffle, StoredOrder
from relayout.layout.transport import Refusal, Transport
from relayout.ops.rule import OpRule, ask, ask_joint, ask_separate
from relayout.ops.shuffles import RESULT, ShuffleFacts
from relayout.targets.target import Target

SEPARATE_ORDERS = 4
"""How many orders of an operand are combined with those of the others, the given one included."""

SHUFFLES_PER_OPERAND = 16
"""How many shuffles of an operand are combined with those of the others, no shuffle included."""

COMBINED_SHUFFLES = 64
"""Where there are more combinations, only those with the newest shuffle of each are tried."""


@dataclass(slots=True)
class NodeVariants:
    """A node, the values it touches, and the answers of its rule so far."""

    node: ir.Node
    view: NodeView
    rule: OpRule
    reads: tuple[int, ...]
    """The operands that are not constants, which follow for nothing."""
    captured: tuple[ir.Value, ...]
    """What the bodies of the node read from outside, in the given order only."""
    wanted: Permutation | None
    """The order of the lead operand that the target has a kernel for, if it has no other."""
    shuffling: ShuffleFacts
    asked: set[tuple[int | None, Permutation]] = field(default_factory=set)
    """The orders of operands that the rule was asked about; None stands for the lead."""
    separate: dict[int, list[Permutation | None]] = field(default_factory=dict)
    """By operand, or `RESULT`, the orders that are combined with those of the others."""

    shuffles: dict[int, list[StoredOrder | None]] = field(default_factory=dict)
    """By operand, or `RESULT`, the orders of entries that are combined with those of the others."""

    @classmethod
    def of(cls, node: ir.Node, region: Region, target: Target) -> NodeVariants:
        view = region.view(node)
        reads = tuple(
            index
            for index, value in enumerate(node.inputs)
            if value is not None and constant_of(value) is None
        )
        rule = target.rule_of(view)
        captured, shuffling = tuple(captured_by(node)), target.shuffles_of(view)
        return cls(node, view, rule, reads, captured, rule.wanted(view), shuffling)

    @property
    def lead(self) -> int:
        return self.rule.lead(self.view)

    def leads_to_try(self, slot: int, *, is_result: bool, seen: Permutation) -> list[Permutation]:
        """Orders of the lead operand that may fit when an operand or result is seen in `seen`.

        Axes of length 1 may stand anywhere, so they are left where the node has them, unless it
        reads constants only, which can be stored just as wanted.
        """
        seen = self._settled(slot, is_result=is_result, seen=seen)
        if is_result and slot == 0:
            pulled = self.rule.pull(self.view, seen)
            return [] if isinstance(pulled, Refusal) else [pulled]
        return [seen] if self.view.rank(self.lead) == seen.rank else []

    def try_lead(self, order: Permutation) -> list[Transport]:
        """The restatements that a new order of the lead operand adds."""
        if not self._is_new(None, order):
            return []
        answer = ask(self.rule, self.view, order)
        joint = self.try_sides(self.lead, order)
        return joint if isinstance(answer, Refusal) else [answer, *joint]

    def try_sides(self, operand: int, order: Permutation) -> list[Transport]:
        """The restatements that a new order of any operand adds where each has its own."""
        if not self._is_new(operand, order):
            return []
        return list(ask_joint(self.rule, self.view, operand, order))

    def try_separately(
        self, slot: int, *, is_result: bool, seen: Permutation
    ) -> Sequence[Transport]:
        """The restatements that combine an order with those that the others were seen in."""
        if self.rule.separate is None:
            return []
        order = self._settled(slot, is_result=is_result, seen=seen)
        port = RESULT if is_result else slot
        known = self.separate.setdefault(port, [None])
        if len(known) >= SEPARATE_ORDERS or order.is_identity or order in known:
            return []
        known.append(order)
        ports = (*range(self.view.arity), RESULT)
        choices = ([order] if each == port else self.separate.get(each, [None]) for each in ports)
        answers = [
            ask_separate(self.rule, self.view, inputs, result)
            for *inputs, result in product(*choices)
        ]
        return [answer for answer in answers if isinstance(answer, Transport)]

    def try_shuffles(self, slot: int, *, is_result: bool, seen: StoredOrder) -> Sequence[Transport]:
        """The restatements in which the entries of some axis come in another order.

        A tensor that is read twice comes in one order, since no shuffle is copied.
        """
        if is_result and slot:
            return []
        facts, port = self.shuffling, RESULT if is_result else slot
        if not facts.apart or is_result:
            return facts.rule(self.view, {port: seen})
        if not isinstance(seen, Shuffle):
            return []
        known = self.shuffles.setdefault(port, [None])
        if len(known) >= SHUFFLES_PER_OPERAND or seen in known:
            return []
        known.append(seen)
        inputs = self.node.inputs
        same = {each: seen for each, value in enumerate(inputs) if value is inputs[port]}
        others = {each: orders for each, orders in self.shuffles.items() if each not in same}
        if prod(map(len, others.values())) > COMBINED_SHUFFLES:
            others = {each: [orders[-1]] for each, orders in others.items()}
        answers = (
            facts.rule(self.view, {**same, **_given(others, orders)})
            for orders in product(*others.values())
        )
        return [transport for answer in answers for transport in answer]

    def _settled(self, slot: int, *, is_result: bool, seen: Permutation) -> Permutation:
        values = self.node.outputs if is_result else self.node.inputs
        shape = shape_of(values[slot])
        return seen if shape is None or not self.reads else seen.settled(shape)

    def _is_new(self, operand: int | None, order: Permutation) -> bool:
        is_new = (operand, order) not in self.asked
        self.asked.add((operand, order))
        return is_new


def _given(ports: Iterable[int], orders: Iterable[StoredOrder | None]) -> dict[int, StoredOrder]:
    pairs = zip(ports, orders, strict=True)
    return {port: order for port, order in pairs if order is not None}
