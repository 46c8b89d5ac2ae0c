"""The independent check of a certificate: exact integers, no solver, linear time."""

from __future__ import annotations

from collections.abc import Mapping

from relayout.assign.bound import bound_of, cost_of
from relayout.assign.component import Decided
from relayout.assign.coverage import differences
from relayout.assign.encoding import Json, decode
from relayout.assign.problem import LayoutProblem


def verify(certificate: Mapping[str, Json], problem: LayoutProblem | None = None) -> list[str]:
    """What is wrong with a certificate; nothing if it holds.

    With the problem at hand it is also checked that the components make up this problem.
    """
    try:
        parts = [decode(component) for component in certificate["components"]]
        totals = certificate["cost"], certificate["bound"]
    except (ValueError, TypeError, KeyError, IndexError) as error:
        return [f"the certificate cannot be read: {error}"]
    faults = [f"component {i}: {fault}" for i, part in enumerate(parts) for fault in _faults(part)]
    if totals != (sum(part.cost for part in parts), sum(part.bound for part in parts)):
        faults.append("the components do not add up to the totals")
    return faults if problem is None else faults + differences(problem, parts)


def _faults(part: Decided) -> list[str]:
    faults = []
    cost = cost_of(part.component, part.chosen)
    if cost != part.cost:
        faults.append(f"the choice costs {cost}, not {part.cost}")
    try:
        bound = bound_of(part.component, part.proof)
    except ValueError as error:
        return [*faults, str(error)]
    if bound < part.bound:
        faults.append(f"the proof shows at least {bound}, not {part.bound}")
    if part.bound > part.cost:
        faults.append("the bound exceeds the cost")
    return faults
