"""The attempts at a model as values: what is tried, what came of it, and why it was kept or not."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from relayout.assign.apply import STATE_AS_EINSUM
from relayout.assign.choose import ChooseLayouts
from relayout.assign.explain import StatedModel
from relayout.assign.strategies.registry import Budget, Strategy
from relayout.assign.terms import Terms
from relayout.graph.io.model import LoadedModel
from relayout.graph.region import regions_of
from relayout.ops.measure import Measure, Objective, bytes_of_constants, most_axes
from relayout.ops.quantised_groups import has_quantised_groups
from relayout.optimizer.pipeline import Checking, Outcome, Timing, Vanishing, chosen
from relayout.optimizer.prepare import Prepared, measured_by
from relayout.report.text import bytes_text, plural
from relayout.report.trace import Span
from relayout.rewrite.refine import LEARN_RANK, LEARN_SHAPE
from relayout.targets.target import Target

KEPT = "kept"
NOTHING_SPLIT = "dropped: no axis can be split into factors"
GREW = "dropped: more Transposes or bytes than given"
SLOWER = "dropped: predicted to take longer than the given model"
MORE_AXES = "dropped: tensors would have more axes than allowed"
MORE_LACKING = "dropped: fewer nodes run in the order that the target has kernels for"
NO_BETTER = "dropped: no better than the attempt before"
BEATEN = "dropped: the next attempt is better"
NOTHING_BETTER = "dropped: no better than the model as given"
CERTAIN = 50
"""A predicted time counts as less than another if it is by more than this part of it."""
ENLARGES = "dropped: constants would take more bytes"
ROUNDING_SHOWS = "dropped: numbers differ at quantisers, as changed rounding makes them"

UNSETTLED = "dropped: it cannot be verified"

FEW_OF = 10
"""One of so many Transposes may be left between quantisers where time is predicted."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One way to optimise a prepared model."""

    terms: Terms
    by_factors: bool = False
    """Whether operators work on the factors of axes that Reshapes merge and split."""
    note: str = ""
    """What the user should know if it is kept."""
    round_number: int = 1
    """From the second round on the model is what the round before made."""

    @property
    def words(self) -> str:
        """The attempt in a few words."""
        terms = self.terms
        extras = (
            *(["on factors of axes"] if self.by_factors else []),
            *(["products as Einsum"] if terms.target.einsum else []),
            *([] if terms.recomputes else ["no operator restated"]),
            *(["sums of products as given"] if terms.keeps_sums else []),
            *(["whatever operators read again"] if terms.ignores_passes else []),
            *(["normalisations joined as given"] if terms.keeps_joined else []),
        )
        again = f"round {self.round_number}: " if self.round_number > 1 else ""
        return again + ", ".join((terms.objective.least, *extras))


@dataclass(slots=True)
class Trial:
    """What came of an attempt."""

    attempt: Attempt
    loaded: LoadedModel
    choose: ChooseLayouts
    before: Measure
    measured: Measure
    """The model that was made, whether it is taken or not."""
    lacking: tuple[int, int]
    """Nodes in an order that the target has no kernel for, before and after."""
    outcomes: tuple[Outcome, ...]
    spans: tuple[Span, ...]
    """When each pass ran, those that all attempts have in common first."""
    seconds: float
    verdict: str = KEPT
    """Why it was kept or dropped."""
    enlarges: bool = False
    """Whether constants would take more bytes, where they may not."""
    exceeds: bool = False
    """Whether a tensor would have more axes than the target allows."""
    simplified: Measure | None = None
    """The model after the local rules alone, where predicted time may not grow.

    A runtime folds on loading what they fold, so the model as given takes no longer than that."""
    splits: bool = False
    """Whether axes of the model could be split into factors."""
    stated: StatedModel | None = None
    """The model that was made as layout problems, where it was looked at again."""
    has_quantised_groups: bool = False
    removed_by: Mapping[str, str] = field(default_factory=dict)
    """By name of a Transpose, which pass removed it."""

    @property
    def improves(self) -> bool:
        """Whether it is better than the model as given: more kernels, or else the objective."""
        if self.enlarges or self.exceeds:
            return False
        given, now = self.lacking
        is_better = self._is_better
        return now < given or (now == given and is_better)

    @property
    def _is_better(self) -> bool:
        """Times are predicted, so a difference counts from a part of them on."""
        objective = self.attempt.terms.objective
        if objective is Objective.TIME:
            return _is_faster(self.measured, self.before) and not self._is_doubtful
        return self.measured.better_than(self.before, objective)

    @property
    def _is_doubtful(self) -> bool:
        """Whether a predicted time says little: runtimes move Transposes between quantisers too.

        What they make of those has no price, so most of them have to go.
        """
        left, given = self.measured.transposes, self.before.transposes
        return self.has_quantised_groups and left * FEW_OF > given

    @property
    def after(self) -> Measure:
        """What the user would get: the model as given where this one is not better."""
        return self.measured if self.improves else self.before

    @property
    def still_lacking(self) -> int:
        return self.lacking[1] if self.improves else self.lacking[0]

    @property
    def traded(self) -> str:
        """Which figure grew, on a target that gained nothing else by it; empty if none did.

        Where time was asked for it decides alone: the other figures are stand-ins for it.
        """
        terms, before, after = self.attempt.terms, self.before, self.after
        # Transposes at a free border are taken into the interface.
        if self.still_lacking != self.lacking[0] or terms.frees:
            return ""
        is_alone = terms.objective is Objective.TIME and not terms.no_figure_grows
        grew = after.transposes > before.transposes or after.bytes_moved > before.bytes_moved
        if grew and not is_alone:
            return GREW
        is_slower = terms.no_figure_grows and self._is_slower
        return SLOWER if is_slower else ""

    @property
    def _is_slower(self) -> bool:
        """Whether what the user gets is predicted to take longer than what it was made of."""
        if not self.improves:
            return False
        known = (self.before, *([] if self.simplified is None else [self.simplified]))
        return any(_is_faster(each, self.after) for each in known)

    @property
    def least(self) -> bool:
        """Whether what the user gets is proved least for the variants offered."""
        return self.choose.optimal and self.verdict not in {GREW, SLOWER}

    @property
    def rewrites(self) -> bool:
        """Whether anything was edited: what is only known better now is the same model."""
        return bool((+self.applied).keys() - {LEARN_RANK, LEARN_SHAPE})

    @property
    def applied(self) -> Counter[str]:
        """How often each rewrite was applied."""
        return sum((outcome.applied for outcome in self.outcomes), Counter[str]())


@dataclass(slots=True)
class Search:
    """Tries a prepared model in several ways, all within one budget."""

    prepared: Prepared
    strategy: Strategy
    budget: Budget
    trials: list[Trial] = field(default_factory=list)
    """In the order in which they were made, in all rounds."""
    stage: Callable[[str], None] = lambda _: None
    """Called with each attempt in words as it begins."""
    found_better: Callable[[LoadedModel], None] = lambda _: None
    """Called with the best of the first round if it is better than the model as given."""
    round_number: int = 1

    def best(self, terms: Terms) -> Trial:
        """The best trial with neither more Transposes nor more bytes moved than the model has.

        Two copies of small tensors may move less than one of a large tensor, or the other way
        round, and an Einsum may copy more than the Transposes it saves. Where that would give the
        user more of one figure, products stay products, and then the other objective decides; time
        does where it may not grow either. None of them `improves` where nothing does without such
        a trade.
        """
        first = self._better(Attempt(terms))
        if not first.traded:
            return first
        first.verdict = first.traded
        for instead in _instead_of(first, parts=self._parts_joined(first)):
            trial = self._better(instead)
            if not trial.traded:
                return trial
            trial.verdict = trial.traded
        return replace(trial, measured=trial.before, lacking=(trial.lacking[0],) * 2)

    def choosing(self, terms: Terms) -> ChooseLayouts:
        """The choice by some terms, within what is left of the budget."""
        solver = self.budget.within(self.strategy)
        return ChooseLayouts(terms, solver, kinds=self.strategy.by_kinds)

    def drop_kept(self, verdict: str) -> None:
        """Drop the trial that was kept, for a reason that showed later."""
        for trial in self.trials:
            if trial.verdict == KEPT:
                trial.verdict = verdict

    def _better(self, attempt: Attempt) -> Trial:
        """The better of two: with the axes as they are, and with operators on their factors."""
        attempt = replace(attempt, round_number=self.round_number)
        whole = self._tried(attempt)
        if not whole.after.transposes or attempt.terms.target.keeps_axes:
            return whole
        split = self._tried(replace(attempt, by_factors=True))
        whole.splits = split.splits = bool(split.choose.decisions)
        split.verdict = _why_dropped(split, whole)
        if split.verdict != KEPT:
            return whole
        whole.verdict = BEATEN
        return split

    def _enlarges(self, made: LoadedModel) -> bool:
        given = bytes_of_constants(self.prepared.informed.ir)
        return bytes_of_constants(made.ir) > given

    def _parts_joined(self, trial: Trial) -> bool:
        """Whether nodes that the runtime would join stay apart in what an attempt made."""
        joined = trial.attempt.terms.target.joined
        models = (trial.loaded.ir, self.prepared.simplified.ir)
        made, given = (sum(joined(each.graph) for each in regions_of(model)) for model in models)
        return made < given

    def _simplified(self, terms: Terms) -> Measure | None:
        """The prepared model, where an attempt must not take longer than it."""
        return measured_by(terms, self.prepared.simplified.ir) if terms.no_figure_grows else None

    def _exceeds(self, made: LoadedModel, target: Target) -> bool:
        """Whether a tensor has more axes than both the target allows and the given model has."""
        most = target.max_rank
        if most is None:
            return False
        found = most_axes(made.ir)
        return found > most and found > most_axes(self.prepared.informed.ir)

    def _tried(self, attempt: Attempt) -> Trial:
        nodes, number = self.prepared.before.nodes, len(self.trials) + 1
        self.stage(f"optimising {nodes} nodes, attempt {number}: {attempt.words}")
        since = time.perf_counter()
        prepared, terms = self.prepared, attempt.terms
        loaded = prepared.simplified.clone()
        choose = self.choosing(terms)
        timing, vanishing = Timing([*prepared.spans]), Vanishing(dict(prepared.removed_by))
        pipeline = chosen(terms.target, choose, by_factors=attempt.by_factors)
        outcomes = pipeline.run(loaded.ir, [Checking(prepared.interface), timing, vanishing])
        if attempt.note:
            loaded.notices.append(attempt.note)
        trial = Trial(
            attempt,
            loaded,
            choose,
            before=prepared.before_by(loaded.ir, terms.dims),
            measured=measured_by(terms, loaded.ir),
            lacking=(prepared.lacking, terms.target.lacking(loaded.ir)),
            outcomes=(*prepared.outcomes, *outcomes),
            spans=tuple(timing.spans),
            seconds=time.perf_counter() - since,
            enlarges=terms.target.keep_size and self._enlarges(loaded),
            exceeds=self._exceeds(loaded, terms.target),
            simplified=self._simplified(terms),
            has_quantised_groups=has_quantised_groups(loaded.ir),
            removed_by=vanishing.steps,
        )
        self.trials.append(trial)
        return trial


def _why_dropped(split: Trial, whole: Trial) -> str:
    """Why the trial on factors is not taken in place of the one on whole axes, if it is not."""
    if not split.choose.decisions:
        return NOTHING_SPLIT
    if split.exceeds:
        return MORE_AXES
    if split.traded:
        return split.traded
    if split.still_lacking > whole.still_lacking:
        return MORE_LACKING
    objective, after = split.attempt.terms.objective, split.after
    if not whole.improves and not after.moves_less_than(whole.after, objective):
        # Fewer nodes alone are no reason to write a model anew on the factors of its axes.
        return NO_BETTER
    return KEPT if after.better_than(whole.after, objective) else NO_BETTER


def _is_faster(one: Measure, other: Measure) -> bool:
    """Whether the predicted time of one is less than that of another for certain."""
    return (other.nanoseconds - one.nanoseconds) * CERTAIN > other.nanoseconds


def _instead_of(trial: Trial, *, parts: bool) -> Iterator[Attempt]:
    """What to attempt where a trial would give the user more of one figure.

    `parts`: whether it also keeps nodes apart that the runtime would join.
    """
    terms, reason = trial.attempt.terms, _why_instead(trial)
    if trial.applied[STATE_AS_EINSUM]:
        products = replace(terms, target=replace(terms.target, einsum=False))
        yield Attempt(products, note=f"{reason}no product was stated as Einsum")
    is_count = terms.objective is Objective.COUNT
    if trial.traded == GREW:
        other = replace(terms, objective=terms.objective.other, ignores_passes=is_count)
        yield Attempt(other, note=f"{reason}the {other.objective.least} were chosen")
    if trial.traded == SLOWER and parts:
        joined = replace(terms, keeps_joined=True)
        yield Attempt(joined, note=f"{reason}normalisations that the runtime joins were kept so")
    if terms.no_figure_grows and terms.target.prices is not None:
        fastest = replace(terms, objective=Objective.TIME)
        yield Attempt(fastest, note=f"{reason}the least time was chosen")


def _why_instead(trial: Trial) -> str:
    terms, after = trial.attempt.terms, trial.after
    if trial.traded == SLOWER:
        asking = f"--minimize {terms.objective.value}"
        return (
            f"the {terms.objective.least} ({asking}) would leave {after.transposes} "
            "Transposes, and are predicted to take longer than the given model; so "
        )
    return (
        f"the {terms.objective.least} would take {plural(after.transposes, 'Transpose')} and "
        f"{bytes_text(after.bytes_moved)}, one of which is more than the given model has; so "
    )
