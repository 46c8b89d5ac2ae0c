"""The ways in which one node can run, found by asking its rule."""

from __future__ import annotations

from dataclasses import dataclass, field

import onnx_ir as ir

from relayout.graph.read import NodeView, constant_of, shape_of
from relayout.graph.region import Region, captured_by
from relayout.layout.permutation import Permutation
from relayout.layout.transport import Refusal, Transport
from relayout.ops.rule import OpRule, ask, ask_joint
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
    wanted: Permutation | None
    """The order of the lead operand that the target has a kernel for, if it has no other."""
    asked: set[tuple[int | None, Permutation]] = field(default_factory=set)
    """The orders of operands that the rule was asked about; None stands for the lead."""

    @classmethod
    def of(cls, node: ir.Node, region: Region, target: Target) -> NodeVariants:
        view = region.view(node)
        reads = tuple(
            index
            for index, value in enumerate(node.inputs)
            if value is not None and constant_of(value) is None
        )
        rule = target.rule_of(view)
        return cls(node, view, rule, reads, tuple(captured_by(node)), rule.wanted(view))

    @property
    def lead(self) -> int:
        return self.rule.lead(self.view)

    def leads_to_try(self, slot: int, *, is_result: bool, seen: Permutation) -> list[Permutation]:
        """Orders of the lead operand that may fit when an operand or result is seen in `seen`.

        Axes of length 1 may stand anywhere, so they are left where the node has them, unless it
        reads constants only, which can be stored just as wanted.
        """
        values = self.node.outputs if is_result else self.node.inputs
        shape = shape_of(values[slot])
        seen = seen if shape is None or not self.reads else seen.settled(shape)
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
        """The restatements that a new order of any operand adds where each has a say."""
        if not self._is_new(operand, order):
            return []
        return list(ask_joint(self.rule, self.view, operand, order))

    def _is_new(self, operand: int | None, order: Permutation) -> bool:
        is_new = (operand, order) not in self.asked
        self.asked.add((operand, order))
        return is_new
