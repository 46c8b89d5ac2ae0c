"""The ways in which one node can run, found by asking its rule."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product

import onnx_ir as ir

from relayout.graph.edit import is_read
from relayout.graph.read import NodeView, constant_of, shape_of
from relayout.graph.region import Region, captured_by
from relayout.layout.permutation import Permutation
from relayout.layout.transport import Refusal, Transport
from relayout.ops.rule import OpRule, ask, ask_side, combined, unchanged
from relayout.targets.target import Target


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
    answers: list[dict[Permutation, Transport]]
    """For each operand whose order can be chosen by itself, what the rule admits."""
    refusals: dict[Permutation, Refusal] = field(default_factory=dict)

    @classmethod
    def of(cls, node: ir.Node, region: Region, target: Target) -> NodeVariants:
        view = region.view(node)
        reads = tuple(
            index
            for index, value in enumerate(node.inputs)
            if value is not None and constant_of(value) is None
        )
        rule = target.rule_of(view)
        answers: list[dict[Permutation, Transport]] = [{} for _ in range(1 + len(rule.sides))]
        return cls(node, view, rule, reads, tuple(captured_by(node)), answers)

    @property
    def lead(self) -> int:
        return self.rule.lead(self.view)

    def leads_to_try(self, slot: int, *, is_result: bool, seen: Permutation) -> list[Permutation]:
        """Orders of the lead operand that may fit when an operand or result is seen in `seen`.

        Axes of length 1 may stand anywhere, so they are left where the node has them.
        """
        values = self.node.outputs if is_result else self.node.inputs
        shape = shape_of(values[slot])
        seen = seen if shape is None else seen.settled(shape)
        if is_result and slot == 0:
            pulled = self.rule.pull(self.view, seen)
            return [] if isinstance(pulled, Refusal) else [pulled]
        return [seen] if self.view.rank(self.lead) == seen.rank else []

    def try_lead(self, order: Permutation) -> list[Transport]:
        """The restatements that a new order of the lead operand adds."""
        if order in self.answers[0] or order in self.refusals:
            return []
        answer = ask(self.rule, self.view, order)
        if isinstance(answer, Refusal):
            self.refusals[order] = answer
            return []
        return self._new(0, order, answer)

    def try_sides(self, operand: int, order: Permutation) -> list[Transport]:
        """The restatements that a new order of another operand adds."""
        found = []
        for number, side in enumerate(self.rule.sides, 1):
            if side.operand != operand or order in self.answers[number]:
                continue
            answer = ask_side(side, self.view, order)
            if not isinstance(answer, Refusal):
                found += self._new(number, order, answer)
        return found

    def _new(self, number: int, order: Permutation, answer: Transport) -> list[Transport]:
        """The answer alone and together with what the other operands admit."""
        self.answers[number][order] = answer
        others = [
            [unchanged(self.view), *admitted.values()]
            for index, admitted in enumerate(self.answers)
            if index != number
        ]
        return [combined([answer, *rest]) for rest in product(*others)]

    @property
    def is_needed(self) -> bool:
        return any(map(is_read, self.node.outputs)) or not self.node.outputs
