"""The pass that chooses the order of every tensor and writes the graph down so."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import onnx_ir as ir

from relayout.assign.apply import apply
from relayout.assign.assignment import Assignment
from relayout.assign.formulate import Formulation, formulate
from relayout.assign.problem import LayoutProblem, as_given, evaluate
from relayout.assign.strategies.exact import solve
from relayout.graph.edit import Editor, Names
from relayout.graph.measure import Objective
from relayout.graph.region import Region, regions_of

Strategy: TypeAlias = Callable[[LayoutProblem], Assignment]
"""Chooses one variant per operator; sees no ONNX."""


@dataclass(slots=True)
class Decision:
    """What was decided for one graph."""

    formulation: Formulation
    assignment: Assignment
    cost_given: int

    @property
    def improves(self) -> bool:
        return self.assignment.cost < self.cost_given


@dataclass(slots=True)
class ChooseLayouts:
    """Dissolve the Transposes of each graph, choose an order per tensor, put the copies back."""

    objective: Objective
    budget_seconds: float = 10.0
    dims: Mapping[str, int] = field(default_factory=dict)
    decisions: list[Decision] = field(default_factory=list)

    def __call__(self, model: ir.Model) -> Counter[str]:
        names = Names.of(model)
        applied: Counter[str] = Counter()
        for region in list(regions_of(model)):
            decision = self.decide(region)
            self.decisions.append(decision)
            if decision.improves:
                editor = Editor(region, names)
                choice = decision.assignment.choice
                applied["restate node"] += apply(decision.formulation, choice, editor)
        return applied

    def decide(self, region: Region) -> Decision:
        formulation = formulate(region, self.objective, self.dims)
        problem = formulation.problem
        given = evaluate(problem, as_given(problem))
        if given is None:
            raise AssertionError("the model as given is always one of the choices")
        return Decision(formulation, solve(problem, self.budget_seconds), given)
