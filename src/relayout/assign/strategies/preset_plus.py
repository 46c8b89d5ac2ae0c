"""The presetting strategy that takes in regions of other tensors where all they read changed alike.

As the document that proposes it has it, but sound: a region joins only if each of its operators
means the same in the new order. Constants have no order of their own; what joined is asked no more,
and what it makes may let others join.
"""

from __future__ import annotations

from relayout.assign.assignment import Assignment
from relayout.assign.problem import LayoutProblem, Operator
from relayout.assign.strategies.demands import assigned, cheapest, demanded
from relayout.assign.strategies.preset import (
    elect_features,
    is_plain,
    preset_choice,
    replace_choice,
)
from relayout.assign.strategies.region_choice import described
from relayout.assign.strategies.regions import OperatorRun, regions, stored_orders


def solve_preset_plus(problem: LayoutProblem) -> Assignment:
    """Like preset, and a region of other tensors joins what it reads, whatever that costs."""
    choice = preset_choice(problem)
    joined: dict[int, None] = {}
    waiting = _tensor_regions(problem)
    refusals: dict[int, str] = {}
    is_fixpoint = False
    while not is_fixpoint:
        is_fixpoint = True
        for region in list(waiting):
            found = _following(problem, choice, region)
            if isinstance(found, str):
                refusals.update(dict.fromkeys(region, found))
                continue
            replace_choice(choice, found)
            elect_features(problem, choice)
            joined.update(dict.fromkeys(region))
            waiting.remove(region)
            is_fixpoint = False
    return assigned(problem, choice, described(problem, choice, joined, refusals))


def _tensor_regions(problem: LayoutProblem) -> list[OperatorRun]:
    """The operators that make other tensors than features, as far as values connect them."""
    kinds = [
        0 if operator.operands and operator.results and is_plain(problem, index) else None
        for index, operator in enumerate(problem.operators)
    ]
    return regions(problem, kinds)


def _following(
    problem: LayoutProblem, choice: list[int], region: OperatorRun
) -> dict[int, int] | str:
    """The variants that read everything as it is stored; or why the region does not join."""
    stored = stored_orders(problem, choice)
    chosen: dict[int, int] = {}
    is_moved = False
    for index in region:
        operator = problem.operators[index]
        found = [i for i in cheapest(operator) if not _misread(operator, i, stored)]
        if not found:
            return _refusal(problem, operator, stored)
        is_moved = is_moved or bool(_misread(operator, 0, stored))
        chosen[index] = found[0]
        stored.update(zip(operator.results, operator.variants[found[0]].writes, strict=True))
    return chosen if is_moved else "everything it reads is stored as given"


def _misread(operator: Operator, variant: int, stored: dict[int, int]) -> list[int]:
    """The operands that a variant reads in another order than they are stored in."""
    reads = zip(operator.operands, operator.variants[variant].reads, strict=True)
    return [value for value, order in reads if stored[value] != order]


def _refusal(problem: LayoutProblem, operator: Operator, stored: dict[int, int]) -> str:
    if demanded(operator) is not None:
        return f"{operator.name} runs in the given order only"
    moved = set(_misread(operator, 0, stored))
    others = [value for value in operator.operands if value not in moved]
    if not moved or not others:
        return f"{operator.name} means something else in the order of what it reads"
    changed, kept = (problem.values[next(iter(each))].name for each in (sorted(moved), others))
    return f"{operator.name} reads {changed}, which changed, and {kept}, which did not"
