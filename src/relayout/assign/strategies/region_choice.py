"""What a strategy that goes by regions made of each, and why."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from relayout.assign.assignment import RegionChoice
from relayout.assign.problem import LayoutProblem, copies
from relayout.assign.strategies.demands import demanded, ports
from relayout.assign.strategies.regions import OperatorRun, connected_runs


def described(
    problem: LayoutProblem,
    choice: Sequence[int],
    joined: Collection[int] = (),
    refusals: Mapping[int, str] | None = None,
) -> tuple[RegionChoice, ...]:
    """The regions of a choice: operators of one class between which nothing is copied.

    Operators that `joined` count as features, whatever they make; `refusals` is why others did not.
    """
    copied = {value for value, *_ in copies(problem, choice)}
    giving = _Reasons(problem, choice, joined, refusals or {}, copied)
    everyone = range(len(problem.operators))
    kinds = [giving.is_plain(index) and index not in joined for index in everyone]
    return tuple(map(giving.region, connected_runs(problem, choice, kinds)))


@dataclass(frozen=True, slots=True)
class _Reasons:
    problem: LayoutProblem
    choice: Sequence[int]
    joined: Collection[int]
    refusals: Mapping[int, str]
    copied: Collection[int]
    """The values that are copied."""

    def is_plain(self, index: int) -> bool:
        results = self.problem.operators[index].results
        return bool(results) and self.problem.values[results[0]].is_plain

    def region(self, run: OperatorRun) -> RegionChoice:
        is_flipped = any(map(self._is_moved, run))
        return RegionChoice(run, is_flipped, self._flipped(run) if is_flipped else self._kept(run))

    def _is_moved(self, index: int) -> bool:
        operator = self.problem.operators[index]
        given, chosen = operator.variants[0], operator.variants[self.choice[index]]
        return list(ports(operator, given)) != list(ports(operator, chosen))

    def _flipped(self, run: OperatorRun) -> str:
        wanting = [index for index in run if demanded(self.problem.operators[index])]
        taken = [index for index in run if index in self.joined]
        why = [f"wanted by {self._some(wanting)}"] if wanting else []
        if taken:
            why.append(f"{self._some(taken)} joined: all they read changed alike")
        return "; ".join(why) or "most demands at its border want it"

    def _kept(self, run: OperatorRun) -> str:
        refusal = next((self.refusals[index] for index in run if index in self.refusals), None)
        if refusal is not None:
            return refusal
        fixed = [index for index in run if demanded(self.problem.operators[index]) == 0]
        if fixed:
            return f"in the given order only: {self._some(fixed)}"
        if self.is_plain(run[0]):
            return "not features, and no operator in it wants another order"
        members = (self.problem.operators[index] for index in run)
        if any(value in self.copied for each in members for value in each.operands + each.results):
            return "no fewer demands at its border are for the given order than for another"
        return "no operator in it wants another order"

    def _some(self, members: Sequence[int]) -> str:
        first, more = self.problem.operators[members[0]].name, len(members) - 1
        return f"{first} and {more} more" if more else first
