"""The pass that chooses the order of every tensor and writes the graph down so."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

import onnx_ir as ir

from relayout.assign.apply import apply
from relayout.assign.assignment import Assignment
from relayout.assign.formulate import Formulation, Terms, formulate
from relayout.assign.part import Part, parts_of
from relayout.assign.problem import LayoutProblem
from relayout.assign.strategies.exact import solve
from relayout.graph.names import Names

Strategy: TypeAlias = Callable[[LayoutProblem], Assignment]
"""Chooses one variant per operator; sees no ONNX."""


@dataclass(slots=True)
class Decision:
    """What was decided for one graph and the bodies in it."""

    graph: str
    formulation: Formulation
    assignment: Assignment

    @property
    def improves(self) -> bool:
        return self.assignment.cost < self.formulation.cost_given


@dataclass(slots=True)
class ChooseLayouts:
    """Dissolve the Transposes of each graph, choose an order per tensor, put the copies back."""

    terms: Terms
    budget_seconds: float = 10.0
    decisions: list[Decision] = field(default_factory=list)

    def __call__(self, model: ir.Model) -> Counter[str]:
        names = Names.of(model)
        applied: Counter[str] = Counter()
        decided = [self.decide(part) for part in parts_of(model)]
        self.decisions.extend(decided)
        # Inner parts first: writing the outer one changes what they read from it.
        for decision in reversed(decided):
            if decision.improves:
                choice = decision.assignment.choice
                applied["restate node"] += apply(decision.formulation, choice, names)
        return applied

    @property
    def notes(self) -> list[str]:
        """What the user should know about how good the choice is."""
        return [
            note
            for decision in self.decisions
            for note in (*decision.formulation.notes, *decision.assignment.notes)
        ]

    @property
    def optimal(self) -> bool:
        """Whether every graph's choice is proved to cost least."""
        return all(decision.assignment.optimal for decision in self.decisions)

    def decide(self, part: Part) -> Decision:
        formulation = formulate(part, self.terms)
        assignment = solve(formulation.problem, self.budget_seconds)
        return Decision(part.root.graph.name or "", formulation, assignment)
