"""The pass that chooses the order of every tensor and writes the graph down so."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import onnx_ir as ir

from relayout.assign.apply import apply
from relayout.assign.assignment import Assignment
from relayout.assign.formulate import Formulation, formulate
from relayout.assign.part import Part, parts_of
from relayout.assign.strategies.exact import solve
from relayout.assign.strategies.registry import Solver
from relayout.assign.terms import Terms
from relayout.graph.names import Names


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
    strategy: Solver = solve
    writes_worse: bool = False
    """Whether a choice is written down even where it costs no less than the graph as given."""
    kinds: bool = True
    """Whether problems state the kinds of tensors, which not every strategy looks at."""
    decisions: list[Decision] = field(default_factory=list)

    def __call__(self, model: ir.Model) -> Counter[str]:
        names = Names.of(model)
        applied: Counter[str] = Counter()
        decided = [self.decide(part) for part in parts_of(model)]
        self.decisions.extend(decided)
        # Inner parts first: writing the outer one changes what they read from it.
        for decision in reversed(decided):
            if decision.improves or self.writes_worse:
                choice = decision.assignment.choice
                applied += apply(decision.formulation, choice, names)
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
        """Whether every graph's choice is proved least for the variants offered."""
        return all(decision.assignment.optimal for decision in self.decisions)

    @property
    def proves(self) -> bool:
        """Whether the strategy proves how good its choices are, as only the exact one does."""
        return all(
            decision.assignment.parts or not decision.formulation.problem.operators
            for decision in self.decisions
        )

    def gains(self, model: ir.Model) -> bool:
        """Whether some choice costs less than a model as it is, of which nothing is written."""
        for part in parts_of(model):
            self.decisions.append(self.decide(part))
            if self.decisions[-1].improves:
                return True
        return False

    def decide(self, part: Part) -> Decision:
        formulation = formulate(part, self.terms, kinds=self.kinds)
        assignment = self.strategy(formulation.problem)
        return Decision(part.root.graph.name or "", formulation, assignment)
