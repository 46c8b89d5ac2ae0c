"""What is claimed of an optimised model, as a document that anyone can check."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from relayout.assign.certificate import verify
from relayout.assign.choose import Decision
from relayout.assign.encoding import Json, certificate
from relayout.assign.problem import LayoutProblem
from relayout.errors import RelayoutError

FORMAT = "relayout certificate 1"
CLAIM = (
    "For each graph, no choice of one variant per operator costs less than the bound: the prices "
    "of the variants plus one copy per tensor and order that is wanted but not stored."
)


def claim(decisions: Sequence[Decision], settings: Mapping[str, Any]) -> dict[str, Json]:
    """The claim about a model: its settings, and the certificate of each of its graphs."""
    return {
        "format": FORMAT,
        "claim": CLAIM,
        "settings": dict(settings),
        "optimal": all(decision.assignment.optimal for decision in decisions),
        "graphs": [
            {"graph": decision.graph, **certificate(decision.assignment)} for decision in decisions
        ],
    }


def faults(document: Json, problems: Sequence[LayoutProblem] | None = None) -> list[str]:
    """What is wrong with a claim; nothing if it holds.

    With the layout problems of the model at hand, the claim must be about just these.
    """
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise RelayoutError(f"this is not a certificate of the form '{FORMAT}'")
    graphs = document.get("graphs")
    if not isinstance(graphs, list) or not all(isinstance(graph, dict) for graph in graphs):
        return ["the graphs cannot be read"]
    if problems is not None and len(problems) != len(graphs):
        return [f"the model has {len(problems)} graphs, the certificate {len(graphs)}"]
    found = []
    for index, graph in enumerate(graphs):
        problem = None if problems is None else problems[index]
        found += [f"graph {graph.get('graph')!r}: {fault}" for fault in verify(graph, problem)]
    gap = any(graph.get("cost") != graph.get("bound") for graph in graphs)
    if not found and document.get("optimal") is not (not gap):
        found.append("its claim to be optimal does not follow from its graphs")
    return found
