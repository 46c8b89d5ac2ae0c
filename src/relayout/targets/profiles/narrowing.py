"""Rules of operators within the limits of a device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from relayout.graph.read import NodeView
from relayout.layout.permutation import Permutation
from relayout.layout.transport import Refusal, Transport
from relayout.ops.rule import OpRule, Orders
from relayout.targets.profiles.profile import Profile


def narrowed(rule: OpRule, profile: Profile) -> OpRule:
    """A rule that refuses what the device does not run, where it runs the node as given."""

    def within(view: NodeView, answer: Transport | Refusal) -> Transport | Refusal:
        if isinstance(answer, Refusal):
            return answer
        return profile.refusal(view, answer) or answer

    def transport(view: NodeView, order: Permutation) -> Transport | Refusal:
        return within(view, rule.transport(view, order))

    def joint(view: NodeView, operand: int, order: Permutation) -> Sequence[Transport]:
        forms = rule.joint(view, operand, order)
        return [form for form in forms if profile.refusal(view, form) is None]

    def separate(view: NodeView, inputs: Orders, result: Permutation | None) -> Transport | Refusal:
        if rule.separate is None:
            return Refusal(f"{view.op_type} has no form with every operand in an order of its own")
        return within(view, rule.separate(view, inputs, result))

    apart = None if rule.separate is None else separate
    return replace(rule, transport=transport, joint=joint, separate=apart)
