"""Passes as values, a pipeline as data, and observers that look on from outside."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import onnx_ir as ir

from relayout.graph.invariants import Interface, check
from relayout.graph.refine import refine_shapes
from relayout.rewrite.constants import FoldConstants
from relayout.rewrite.dead import remove_dead
from relayout.rewrite.matmul import FoldIntoGemm, FoldIntoMatMul
from relayout.rewrite.splits import GroupTransposedLegs
from relayout.rewrite.transposes import ComposeChain, DropIdentity, FoldConstant, ShareEqual
from relayout.rewrite.views import UnitMoveToReshape
from relayout.rewrite.worklist import Rewrite, rewrite_model
from relayout.targets.target import Target


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one pass did: how often each rewrite was applied."""

    name: str
    applied: Counter[str]

    @property
    def changed(self) -> bool:
        return self.applied.total() > 0


@dataclass(frozen=True, slots=True)
class Pass:
    """A named step that edits a model in place and counts what it did."""

    name: str
    apply: Callable[[ir.Model], Counter[str]]

    def run(self, model: ir.Model) -> Outcome:
        return Outcome(self.name, self.apply(model))


class Observer(Protocol):
    """Looks on while a pipeline runs; passes know nothing of it."""

    def before(self, step: Pass, model: ir.Model) -> None: ...

    def after(self, outcome: Outcome, model: ir.Model) -> None: ...


@dataclass(frozen=True, slots=True)
class Pipeline:
    steps: tuple[Pass, ...]

    def run(self, model: ir.Model, observers: Sequence[Observer] = ()) -> list[Outcome]:
        outcomes = []
        for step in self.steps:
            for observer in observers:
                observer.before(step, model)
            outcome = step.run(model)
            outcomes.append(outcome)
            for observer in observers:
                observer.after(outcome, model)
        return outcomes


def local_rules(target: Target) -> Pipeline:
    """What comes before a choice of layouts: nothing dead, no chain of Transposes."""
    return Pipeline(_rules_and_shapes(target))


def graph_rules(target: Target) -> Pipeline:
    """The rules of Transposes and matrix products, to a fixpoint."""
    return Pipeline((*_local_rules(target), *_last_rules()))


def layouts(target: Target, choose: Callable[[ir.Model], Counter[str]]) -> Pipeline:
    """The local rules, then a choice of layouts for the whole model, then the local rules again."""
    return Pipeline(
        (
            *_rules_and_shapes(target),
            Pass("choose layouts", choose),
            *_local_rules(target),
            *_last_rules(),
        )
    )


def _rules_and_shapes(target: Target) -> tuple[Pass, ...]:
    """The local rules, and again after what their folding says about shapes."""
    rules = _local_rules(target)
    again = (Pass("learn shapes", refine_shapes), *rules)
    return (*rules, *again, *again)


def _local_rules(target: Target) -> tuple[Pass, ...]:
    return (
        Pass("remove dead nodes", remove_dead),
        Pass("simplify Transposes", lambda model: rewrite_model(model, simplifying(target))),
    )


def _last_rules() -> tuple[Pass, ...]:
    """What would get in the way of other rewrites."""
    last = (GroupTransposedLegs(), UnitMoveToReshape())
    return (Pass("rewrite what is left", lambda model: rewrite_model(model, last)),)


def simplifying(target: Target) -> Sequence[Rewrite]:
    """The rewrites that belong together, made anew so that none remembers another model."""
    return (
        FoldConstants(),
        DropIdentity(),
        ComposeChain(),
        FoldConstant(),
        ShareEqual(),
        FoldIntoGemm(),
        FoldIntoMatMul(target),
    )


@dataclass(slots=True)
class Checking:
    """Raises after the first pass that breaks an invariant."""

    interface: Interface

    def before(self, step: Pass, model: ir.Model) -> None:
        """Nothing to look at yet."""

    def after(self, _outcome: Outcome, model: ir.Model) -> None:
        check(model, self.interface)


@dataclass(slots=True)
class Timing:
    """How long each pass took."""

    seconds: dict[str, float] = field(default_factory=dict)
    _since: float = 0.0

    def before(self, _step: Pass, _model: ir.Model) -> None:
        self._since = time.perf_counter()

    def after(self, outcome: Outcome, _model: ir.Model) -> None:
        spent = time.perf_counter() - self._since
        self.seconds[outcome.name] = self.seconds.get(outcome.name, 0.0) + spent
