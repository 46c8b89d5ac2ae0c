"""Operators from outside that treat the axes of their operands like known ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from onnx.defs import onnx_opset_version

from relayout.graph.read import NodeView
from relayout.layout.permutation import Permutation
from relayout.layout.transport import Refusal, Transport
from relayout.ops.facts import LengthFacts, OpFacts
from relayout.ops.kernels import KernelFacts
from relayout.ops.rule import OpRule

Rest = ParamSpec("Rest")
Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class LikeView(NodeView):
    """A node that is seen as one of another operator, in its newest version."""

    like: str
    like_domain: str

    @property
    def op_type(self) -> str:
        return self.like

    @property
    def domain(self) -> str:
        return self.like_domain


def facts_like(known: OpFacts, name: str, *, domain: str, op_type: str) -> OpFacts:
    """The facts of a known operator for one that may compute other numbers.

    What follows from the numbers is left out: the values of small integer tensors, evaluation at
    compile time, and forms in which the known operator is stated by others.
    """
    seen = _Seen(name, known.domain)
    return OpFacts(
        (op_type,),
        _rule_like(known.rule, seen),
        domain,
        None if known.kernel is None else _kernel_like(known.kernel, seen),
        known.layout,
        None if known.axes is None else seen.by(known.axes),
        LengthFacts(
            broadcast=None if known.lengths.broadcast is None else seen.by(known.lengths.broadcast),
            keeps_shape=known.lengths.keeps_shape,
        ),
        replace(known.numbers, evaluation=None, joins_quantisers=False, activates=False),
        known.copies,
        known.storage,
        by_element=known.by_element,
    )


@dataclass(frozen=True, slots=True)
class _Seen:
    """As which operator a node is seen."""

    name: str
    domain: str

    def by(
        self, rule: Callable[Concatenate[NodeView, Rest], Answer]
    ) -> Callable[Concatenate[NodeView, Rest], Answer]:
        version = 1 if self.domain else onnx_opset_version()

        @wraps(rule)
        def asked(view: NodeView, /, *rest: Rest.args, **named: Rest.kwargs) -> Answer:
            return rule(LikeView(view.node, version, self.name, self.domain), *rest, **named)

        return asked


def _rule_like(rule: OpRule, seen: _Seen) -> OpRule:
    transport, joint = seen.by(rule.transport), seen.by(rule.joint)

    def restated(view: NodeView, order: Permutation) -> Transport | Refusal:
        answer = transport(view, order)
        if isinstance(answer, Refusal) or _is_same_operator(answer):
            return answer
        return Refusal(f"{view.op_type} is not known to be what other operators state")

    def jointly(view: NodeView, operand: int, order: Permutation) -> Sequence[Transport]:
        return [answer for answer in joint(view, operand, order) if _is_same_operator(answer)]

    return OpRule(restated, seen.by(rule.pull), seen.by(rule.lead), jointly, barrier=rule.barrier)


def _is_same_operator(answer: Transport) -> bool:
    return answer.changes.op_type is None and not answer.changes.steps


def _kernel_like(kernel: KernelFacts, seen: _Seen) -> KernelFacts:
    """Its elements may take longer, so it is not done twice."""
    return replace(
        kernel,
        kind=seen.by(kernel.kind) if callable(kernel.kind) else kernel.kind,
        rows=None if kernel.rows is None else seen.by(kernel.rows),
        move=None if kernel.move is None else seen.by(kernel.move),
        is_exact=False,
        weight_results=None,
        pads=False,
    )
