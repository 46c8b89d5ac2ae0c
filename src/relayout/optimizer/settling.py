"""What is delivered where verification settles nothing: less is changed, in the end nothing.

A result that is neither proved nor refuted, and of which no numbers could be compared, may be right
all the same. The nodes that the proof does not follow are functions of their operands as long as
they stay as they are, so without them the rest may be proved.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from relayout.assign.terms import Terms
from relayout.graph.io.model import LoadedModel
from relayout.graph.region import regions_of
from relayout.optimizer.attempts import UNSETTLED, Search
from relayout.optimizer.result import Result
from relayout.optimizer.road import Road
from relayout.report.text import plural
from relayout.targets.gate import name_of

SHOWN = 5
"""Nodes that are listed by name."""


def settled(road: Road, search_of: Callable[[Terms], Search], result: Result) -> Result:
    """The result, or one that changes less if it is not known whether that one is right."""
    if not result.is_unsettled:
        return result
    again = _with_nodes_kept(road, search_of, result)
    if again is not None and not again.is_unsettled:
        return again
    return road.stood_in(result) if road.stands_in_for(result) else result


def _with_nodes_kept(
    road: Road, search_of: Callable[[Terms], Search], result: Result
) -> Result | None:
    """What is made with the nodes as given that the proof does not follow, if it is something."""
    names = _not_followed(road.given, result)
    if not names:
        return None
    terms = result.choose.terms
    gate = terms.target.gate.with_names(names)
    terms = replace(terms, target=replace(terms.target, gate=gate))
    made = road.made(search_of(terms), terms, _kept_text(names))
    attempts = (*result.dropped(UNSETTLED), *made.attempts)
    made = replace(made, attempts=attempts, offers=result.offers)
    return road.handed_over(made) if made.changed else None


def _not_followed(given: LoadedModel, result: Result) -> tuple[str, ...]:
    """The nodes of the given model that a proof knows nothing of."""
    proof = None if result.verdict is None else result.verdict.proof
    if proof is None:
        return ()
    known = {name_of(node) for region in regions_of(given.ir) for node in region.graph}
    return tuple(name for name in proof.not_followed if name in known)


def _kept_text(names: tuple[str, ...]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return (
        f"{plural(len(names), 'node')} kept as given, since what was made of the model otherwise "
        f"could not be verified: {', '.join(names[:SHOWN])}{more}"
    )
