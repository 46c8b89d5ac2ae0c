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
from relayout.assign.problem import LayoutProblem, as_given, evaluate
from relayout.assign.strategies.exact import solve
from relayout.graph.edit import Editor
from relayout.graph.names import Names
from relayout.graph.region import Region, regions_of

Strategy: TypeAlias = Callable[[LayoutProblem], Assignment]
"""Chooses one variant per operator; sees no ONNX."""


@dataclass(slots=True)
class Decision:
    """What was decided for one graph."""

    graph: str
    formulation: Formulation
    assignment: Assignment
    cost_given: int

    @property
    def improves(self) -> bool:
        return self.assignment.cost < self.cost_given


@dataclass(slots=True)
class ChooseLayouts:
    """Dissolve the Transposes of each graph, choose an order per tensor, put the copies back."""

    terms: Terms
    budget_seconds: float = 10.0
    decisions: list[Decision] = field(default_factory=list)

    def __call__(self, model: ir.Model) -> Counter[str]:
        names = Names.of(model)
        applied: Counter[str] = Counter()
        for region in list(regions_of(model)):
            is_main = region.graph is model.graph
            decision = self.decide(region, self.terms if is_main else self.terms.inside())
            self.decisions.append(decision)
            if decision.improves:
                editor = Editor(region, names)
                choice = decision.assignment.choice
                applied["restate node"] += apply(decision.formulation, choice, editor)
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

    def decide(self, region: Region, terms: Terms) -> Decision:
        formulation = formulate(region, terms)
        problem = formulation.problem
        given = evaluate(problem, as_given(problem))
        if given is None:
            raise AssertionError("the model as given is always one of the choices")
        assignment = solve(problem, self.budget_seconds)
        return Decision(region.graph.name or "", formulation, assignment, given)
