"""What is claimed of an optimised model, as a document that anyone can check."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from relayout.assign.certificate import verify
from relayout.assign.choose import Decision
from relayout.assign.encoding import Json, certificate
from relayout.assign.problem import LayoutProblem
from relayout.errors import RelayoutError

FORMAT = "relayout certificate 2"
CLAIM = (
    "Least for the variants offered: for each graph of the model with the hash 'model', no choice "
    "of one of the listed variants per operator costs less than the bound, which counts the prices "
    "of the variants plus one copy per tensor and order that is wanted but not stored. Other ways "
    "to state the operators are not considered."
)
EMPTY = "it has no components, so it proves nothing"


@dataclass(frozen=True, slots=True)
class Round:
    """One choice of layouts: for which model, under which settings, and what was decided."""

    model: str
    """The hash of the model that the choice was made for."""
    settings: Mapping[str, Any]
    decisions: Sequence[Decision]

    def to_json(self) -> dict[str, Json]:
        return {
            "model": self.model,
            "settings": dict(self.settings),
            "optimal": all(decision.assignment.optimal for decision in self.decisions),
            "graphs": [
                {"graph": decision.graph, **certificate(decision.assignment)}
                for decision in self.decisions
            ],
        }


def claim(rounds: Sequence[Round], about: Mapping[str, Json]) -> dict[str, Json]:
    """The claim about a model: what it is about, the last round, and those before it.

    Each round is a claim about the model that it was given: the first about the given model, each
    further one about what the round before it made.
    """
    *earlier, last = [each.to_json() for each in rounds]
    return {"format": FORMAT, "claim": CLAIM, **about, **last, "earlier": earlier}


def rounds_of(document: Json) -> list[dict[str, Json]]:
    """The rounds of a claim, first ones first."""
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise RelayoutError(f"this is not a certificate of the form '{FORMAT}'")
    earlier = document.get("earlier")
    rounds = [*earlier, document] if isinstance(earlier, list) else []
    if not rounds or not all(isinstance(each, dict) for each in rounds):
        raise RelayoutError("the rounds of the certificate cannot be read")
    return rounds


def faults(one: Mapping[str, Json], problems: Sequence[LayoutProblem] | None = None) -> list[str]:
    """What is wrong with a round of a claim; nothing if it holds.

    With the layout problems of its model at hand, the round must be about just these.
    """
    graphs = one.get("graphs")
    if not isinstance(graphs, list) or not all(isinstance(graph, dict) for graph in graphs):
        return ["the graphs cannot be read"]
    if problems is not None and len(problems) != len(graphs):
        return [f"the model has {len(problems)} graphs, the certificate {len(graphs)}"]
    if problems is None and not any(graph.get("components") for graph in graphs):
        return [EMPTY]
    found = list(_graph_faults(graphs, problems))
    gap = any(graph.get("cost") != graph.get("bound") for graph in graphs)
    if not found and one.get("optimal") is not (not gap):
        found.append("its claim to be least does not follow from its graphs")
    return found


def _graph_faults(
    graphs: Sequence[Mapping[str, Json]], problems: Sequence[LayoutProblem] | None
) -> Iterator[str]:
    for index, graph in enumerate(graphs):
        problem = None if problems is None else problems[index]
        yield from (f"graph {graph.get('graph')!r}: {fault}" for fault in verify(graph, problem))
