"""Rounds: what a result opens is taken up, until a round finds nothing better.

A choice of layouts is least for the variants offered for the model it is made for. Its result may
offer more: an operator that was restated as another one has that one's variants, a shape that is
known now has axes of length 1, candidates that were left out come into reach, and Reshapes that
have met let axes be split that could not be before. So the result is optimised again, as a user
would do who gives it to relayout once more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from relayout.assign.apply import RESTATE
from relayout.assign.choose import Decision
from relayout.assign.explain import StatedModel
from relayout.assign.strategies.registry import DEFAULT_SECONDS, EXACT, Budget, Strategy
from relayout.assign.terms import Terms
from relayout.graph.io.load import reloaded
from relayout.graph.io.model import LoadedModel
from relayout.graph.io.save import to_proto
from relayout.graph.read import shape_of
from relayout.layout.transport import AS_GIVEN, Changes
from relayout.optimizer.attempts import NO_BETTER, Search, Trial
from relayout.optimizer.pipeline import CHOICE, Outcome, split_axes
from relayout.optimizer.prepare import prepare
from relayout.rewrite.dead import REMOVE_DEAD
from relayout.rewrite.refine import has_vague_moves
from relayout.rewrite.transposes import ComposeChain, DropIdentity, FoldConstant, ShareEqual

DISSOLVED = frozenset(
    {
        *(RESTATE, REMOVE_DEAD, ComposeChain().name, DropIdentity().name),
        *(FoldConstant().name, ShareEqual().name),
    }
)
"""Rewrites after which the next round would state the same problem: Transposes dissolve in it."""


def in_rounds(search: Search, terms: Terms) -> list[Trial]:
    """The best trial of every round that found something, and of the first one in any case."""
    taken = [search.best(terms)]
    if taken[0].improves:
        search.found_better(taken[0].loaded)
    while taken[-1].improves and not search.budget.is_spent and opens_more(taken[-1]):
        trial = taken[-1]
        anew = _with_shapes_anew(trial.loaded)
        # What was asked for and given up for another figure would be given up again.
        kept = trial.attempt.terms
        rewritten = kept.rewrites_transposes
        prepared = prepare(anew, terms.target, terms.dims, rewritten=rewritten)
        search = replace(search, prepared=prepared, round_number=search.round_number + 1)
        is_known_better = prepared.before != trial.after
        if not is_known_better and not _finds_more(search, trial):
            break
        again = search.best(kept)
        if not again.improves:
            break
        if not _is_less(again, trial):
            again.verdict = NO_BETTER
            break
        taken.append(again)
    return taken


def _is_less(again: Trial, trial: Trial) -> bool:
    """Whether a round ended below the one before it, so that rounds come to an end.

    A model in another form may be known less well, and what looks like a gain over it may be none.
    """
    if again.still_lacking != trial.still_lacking:
        return again.still_lacking < trial.still_lacking
    return again.after.better_than(trial.after, again.attempt.terms.objective)


def _finds_more(search: Search, trial: Trial) -> bool:
    """Whether a local rule applies, or a choice costs less than what a trial made as it is.

    Much less work than attempts, which write what was chosen and clean up.
    """
    if any(+outcome.applied for outcome in search.prepared.outcomes):
        return True
    model, terms = search.prepared.simplified.ir, trial.attempt.terms
    choose = search.choosing(terms)
    if choose.gains(model):
        return True
    if terms.are_reported and not has_vague_moves(trial.loaded.ir):
        stated = tuple(decision.formulation for decision in choose.decisions)
        trial.stated = StatedModel(model, stated)
    if not search.prepared.before.transposes or terms.target.keeps_axes:
        return False
    split = model.clone()
    return split_axes(split, terms.target) and choose.gains(split)


def _with_shapes_anew(made: LoadedModel) -> LoadedModel:
    """A model that was made, with what shapes a reader of it would infer where some are unknown."""
    if not has_vague_moves(made.ir):
        return made
    anew = reloaded(made, to_proto(made))
    return made if anew.frozen else replace(anew, notices=list(made.notices))


def opens_more(trial: Trial) -> bool:
    """Whether the result of a trial may offer variants that the model it came from did not.

    Where it cannot, the next round would state the same problem, whose best choice is known.
    """
    after_choice = _after_choice(trial.outcomes)
    rewritten = {name for outcome in after_choice for name in +outcome.applied}
    is_vague = has_vague_moves(trial.loaded.ir)
    if trial.splits or is_vague or not rewritten <= DISSOLVED:
        return True
    if not trial.after.transposes and not trial.after.bytes_moved:
        return False
    return any(map(_is_open, trial.choose.decisions))


def _after_choice(outcomes: Sequence[Outcome]) -> Sequence[Outcome]:
    names = [outcome.name for outcome in outcomes]
    return outcomes[names.index(CHOICE) :]


def _is_open(decision: Decision) -> bool:
    """Whether what was written for one graph can offer more than the graph did."""
    formulation = decision.formulation
    if not decision.improves:
        return False
    tensors = formulation.tensors
    if any(tensor.full or _has_unit_axis(shape_of(value)) for value, tensor in tensors.items()):
        return True
    chosen = enumerate(decision.assignment.choice[: len(formulation.drafts)])
    return any(_is_other_operator(formulation.transport(*each).changes) for each in chosen)


def _has_unit_axis(shape: Sequence[object] | None) -> bool:
    return shape is None or 1 in shape


def _is_other_operator(changes: Changes) -> bool:
    """Whether more than parameters change, so that the rules of other operators apply."""
    return replace(changes, attributes={}, constants={}) != AS_GIVEN


def best_form(
    given: LoadedModel, terms: Terms, strategy: Strategy = EXACT, seconds: float = DEFAULT_SECONDS
) -> LoadedModel:
    """A model as the optimiser would write it for a target, to be worked on further."""
    prepared = prepare(given, terms.target, terms.dims)
    trial = in_rounds(Search(prepared, strategy, Budget(seconds)), terms)[-1]
    return trial.loaded if trial.improves else prepared.simplified
