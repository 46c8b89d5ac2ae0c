"""From what was tried to a file in its place."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from relayout.assign.choose import ChooseLayouts
from relayout.assign.terms import Terms
from relayout.graph.io.destination import Destination, Document
from relayout.graph.io.free_interface import free_interface
from relayout.graph.io.model import LoadedModel
from relayout.ops.measure import Measure
from relayout.optimizer.asked_form import written_out
from relayout.optimizer.attempts import ENLARGES, KEPT, NOTHING_BETTER, UNSETTLED, Search, Trial
from relayout.optimizer.certificates import Taken
from relayout.optimizer.delivery import Comparing, Delivery, Stage, deliver
from relayout.optimizer.pipeline import split_slow_transposes
from relayout.optimizer.prepare import Prepared, fixed, measured_by
from relayout.optimizer.report_files import ReportFiles
from relayout.optimizer.result import Result
from relayout.optimizer.rounds import in_rounds
from relayout.report.records import AttemptRecord
from relayout.report.trace import seconds_by_name
from relayout.verify.verdict import NumericOptions

Ready: TypeAlias = Callable[[Result], None]
"""Called with what is about to be written."""


@dataclass(frozen=True, slots=True)
class Road:
    """What every result of a run goes through, whichever attempt made it."""

    given: LoadedModel
    output: Destination | None
    certificate: Destination | None
    reports: ReportFiles
    inputs: NumericOptions | None
    """What the numbers are compared on; None where they are not compared."""
    ready: Ready
    stage: Stage
    comparing: Comparing
    found_better: Callable[[LoadedModel], None]
    """Called as soon as it is known that there will be a result to compare, with a model like it.
    """
    fix_defaults: bool = False
    inlines: bool = False
    """Whether functions are written out before a model is compared."""
    reforms: bool = False
    """Whether a newer opset, constants in place of defaults or other layouts were asked for."""

    def copied(self, terms: Terms, reason: str) -> Result:
        """A model that may not be changed."""
        kept = self.given.clone()
        kept.notices.append(f"copied as it is: {reason}")
        if self.certificate is not None:
            kept.notices.append("no certificate: the model was copied as it is")
        nothing = Measure(0, 0, 0)
        result = Result(kept, ChooseLayouts(terms), nothing, nothing, (), False, {})
        return self._delivered(result, None)

    def finished(self, search: Search, terms: Terms, *notices: str) -> Result:
        """The best of some attempts, verified and written."""
        return self.handed_over(self.made(search, terms, *notices))

    def made(self, search: Search, terms: Terms, *notices: str) -> Result:
        """The best of some attempts."""
        search = replace(search, stage=self.stage, found_better=self.found_better)
        trials = in_rounds(search, terms)
        trial = trials[-1]
        is_split = trial.improves and split_slow_transposes(trial.loaded.ir, trial.attempt.terms)
        result = replace(
            _result(trials, search.prepared, trial.loaded),
            rounds=tuple(self._taken(trials)),
            attempts=tuple(map(_attempt_record, search.trials)),
            spans=tuple(dict.fromkeys(span for each in search.trials for span in each.spans)),
            stated=None if is_split else trial.stated,
            informed=search.prepared.informed,
        )
        is_made = is_split or any(each.rewrites for each in trials)
        if not trial.improves or not is_made:
            result = self.as_given(result)
        result.loaded.notices.extend(notices)
        return result

    def as_given(self, result: Result) -> Result:
        """The model as it came, in place of a result."""
        kept = (fixed(self.given) if self.fix_defaults else self.given).clone()
        kept.notices[:] = result.loaded.notices
        is_fixed = kept.source is not self.given.source
        result = replace(result, loaded=kept, changed=is_fixed, after=result.before, outcomes=())
        return replace(result, stated=None)

    def stands_in_for(self, result: Result) -> bool:
        """Whether the model as it came may take a result's place: its form was left to us."""
        return not (self.inlines or self.reforms or result.choose.terms.frees)

    def stood_in(self, result: Result) -> Result:
        """The model as it came, delivered in place of a result of which nothing is known."""
        lacking = (result.lacking[0],) * 2
        attempts = result.dropped(UNSETTLED)
        kept = self.as_given(replace(result, least=False, lacking=lacking, attempts=attempts))
        if self.certificate is not None:
            kept.loaded.notices.append("no certificate: the model is as it was")
        return self._delivered(kept, None)

    def _taken(self, trials: Sequence[Trial]) -> Iterator[Taken]:
        """The rounds that trials are the best of, each given what the one before it made."""
        models = [self.given, *(trial.loaded for trial in trials[:-1])]
        for model, trial in zip(models, trials, strict=True):
            yield Taken(
                *(model, model is not self.given, trial.choose, trial.attempt.by_factors),
                opset=trial.loaded.ir.opset_imports.get(""),
                fixed_defaults=self.fix_defaults,
            )

    def handed_over(self, result: Result) -> Result:
        """Deliver a model; one whose interface may change is verified before that happens."""
        if self.inlines:
            result = written_out(result)
        if not result.choose.terms.frees:
            return self._delivered(result, self.inputs)
        if self.inputs is not None:
            changed, comparing = result.changed, self.comparing
            delivery = deliver(
                *(self.given, result.loaded, None, self.inputs, self.stage),
                changed=changed,
                comparing=comparing,
            )
            result = replace(result, verdict=delivery.verdict)
        return self._delivered(_freed(result), None) if result.accepted else result

    def _delivered(self, result: Result, inputs: NumericOptions | None) -> Result:
        """Compare the model with the given one, and write it if it is right."""

        def beside(delivery: Delivery) -> Iterator[Document]:
            delivered = _as_delivered(result, delivery)
            if self.certificate is not None and result.chooses and not result.withheld:
                proof = delivered.certified(delivery.staged)
                yield Document(self.certificate, json.dumps(proof).encode())
            if self.reports.are_asked:
                from relayout.optimizer.pages import run_page

                self.stage("drawing")
                yield from self.reports.documents(run_page(delivered))
            self.ready(delivered)

        delivery = deliver(
            *(self.given, result.loaded, self.output, inputs, self.stage),
            changed=result.changed,
            beside=lambda delivery: tuple(beside(delivery)),
            comparing=self.comparing,
        )
        return _as_delivered(result, delivery)


def _as_delivered(result: Result, delivery: Delivery) -> Result:
    verdict, output = delivery.verdict or result.verdict, delivery.output or result.output
    return replace(result, verdict=verdict, output=output)


def _result(trials: Sequence[Trial], prepared: Prepared, loaded: LoadedModel) -> Result:
    """What came of the rounds that found something, the last of which made the model."""
    trial = trials[-1]
    outcomes = tuple(outcome for each in trials for outcome in each.outcomes)
    return Result(
        *(loaded, trial.choose, trials[0].before, trial.after, outcomes, trial.improves),
        seconds_by_name(span for each in trials for span in each.spans),
        lacking=(trials[0].lacking[0], trial.still_lacking),
        spelt_out=prepared.spelt_out,
        least=trial.least,
        removed_by={name: step for each in trials[::-1] for name, step in each.removed_by.items()},
    )


def _freed(result: Result) -> Result:
    """The model with the Transposes at its border taken into its interface."""
    terms = result.choose.terms
    changes = free_interface(result.loaded, inputs=terms.free_inputs, outputs=terms.free_outputs)
    result.loaded.notices.extend(changes)
    if not changes:
        return result
    after = measured_by(terms, result.loaded.ir)
    return replace(result, after=after, changed=True, stated=None)


def _attempt_record(trial: Trial) -> AttemptRecord:
    measured, verdict = trial.measured, trial.verdict
    if verdict == KEPT and not trial.improves:
        verdict = ENLARGES if trial.enlarges else NOTHING_BETTER
    figures = measured.transposes, measured.bytes_moved
    return AttemptRecord(trial.attempt.words, *figures, trial.seconds, verdict)
