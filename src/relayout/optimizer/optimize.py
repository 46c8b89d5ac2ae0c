"""Optimises a model: read, tried in several ways, the best one verified and written."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import TypeAlias

from relayout.assign.choose import ChooseLayouts
from relayout.assign.strategies.registry import (
    DEFAULT_SECONDS,
    EXACT,
    Budget,
    Strategy,
    strategy_of,
)
from relayout.assign.terms import Terms
from relayout.errors import RelayoutError
from relayout.graph.collector import paused_collector
from relayout.graph.io.destination import Destination, Document, Output
from relayout.graph.io.free_interface import free_interface
from relayout.graph.io.load import load
from relayout.graph.io.model import LoadedModel
from relayout.graph.io.sources import ModelSource
from relayout.ops.measure import Measure, Objective, measure, objective_of
from relayout.optimizer.attempts import (
    ENLARGES,
    KEPT,
    NOTHING_BETTER,
    ROUNDING_SHOWS,
    Search,
    Trial,
)
from relayout.optimizer.certificates import Taken
from relayout.optimizer.delivery import Comparing, Delivery, Stage, check_names, deliver
from relayout.optimizer.prepare import Prepared, as_asked, fixed, prepare
from relayout.optimizer.result import Result
from relayout.optimizer.rounds import in_rounds
from relayout.report.records import AttemptRecord
from relayout.targets.target import ONNX, Target, target_of
from relayout.verify.isolated import compare_isolated
from relayout.verify.verdict import NumericOptions

Ready: TypeAlias = Callable[[Result], None]
"""Called with what is about to be written."""

ROUGH = "what changes rounding was left out, since quantisers turned it into whole steps"


def optimize(
    source: ModelSource,
    output: Output | None = None,
    *,
    target: str | Target = ONNX,
    keep: Sequence[str] = (),
    einsum: bool | None = None,
    keep_size: bool = False,
    strategy: str | Strategy = EXACT,
    minimize: str | Objective = Objective.BYTES,
    budget: float = DEFAULT_SECONDS,
    free_inputs: bool = False,
    free_outputs: bool = False,
    opset: int | None = None,
    fix_defaults: bool = False,
    verify: bool = True,
    inputs: NumericOptions | None = None,
    certificate: Output | None = None,
    ready: Ready = lambda _: None,
    stage: Stage = lambda _: None,
    comparing: Comparing = compare_isolated,
) -> Result:
    """Choose the order of every tensor, compare the numbers, write the result to `output`.

    `target`, `strategy` and `minimize` are names or values. `keep` selects nodes that stay as they
    are: by name, `op:LRN`, `rank:3` or `device:cpu`. `einsum` lets a product of matrices be stated
    as Einsum, which reads its factors in any order; left open it does so where Transposes are
    counted and only standard operators may be used. `keep_size` forbids to store a
    constant in two orders, where one of its readers could have another than the rest. Only the
    strategy "exact" proves its choice
    least for the variants offered. `minimize` is "bytes" (fewest bytes moved by Transposes)
    or "count" (fewest Transposes); after `budget` seconds of choosing, all attempts together, the
    best found is taken. `free_inputs` and `free_outputs` let the orders of the model's own inputs
    and outputs change; the change is reported in the notices. `opset` brings the model to a newer
    opset first: from 23 on Attention is an operator. `fix_defaults` makes constants of inputs that
    have a default, which removes them from the inputs.

    `output` is a path or a binary file open for writing. Nothing is written if the numbers differ
    or cannot be compared. A model for which nothing better was found is written as it came, byte
    for byte. The proof of the choice is written to `certificate` together with the model.
    `ready` is called with the result before anything takes its place: if it raises, nothing does.
    """
    inputs = replace(inputs or NumericOptions(), fix_defaults=fix_defaults)
    objective = objective_of(minimize)
    solver = strategy_of(strategy)
    place, proof = _destinations(output, certificate, source, solver)
    runtime = target_of(target, keep, einsum=einsum, keep_size=keep_size, objective=objective)
    terms = Terms(objective, runtime, inputs.dims, free_inputs, free_outputs)
    stage("reading")
    given = load(source)
    check_names(given, inputs)
    road = _Road(given, place, proof, inputs if verify else None, ready, stage, comparing)
    asked = as_asked(given, opset, fix_defaults=fix_defaults)
    if asked.frozen is not None:
        return road.copied(terms, asked.frozen)
    runtime.check_gate(asked.ir)
    stage("optimising")
    with paused_collector():
        prepared = prepare(asked, runtime, inputs.dims)
    search = Search(prepared, solver, Budget(budget))
    result = road.finished(search, terms, fix_defaults=fix_defaults)
    for careful in terms.with_care:
        if result.shows_rounding:
            search.drop_kept(ROUNDING_SHOWS)
            result = road.finished(search, careful, ROUGH, fix_defaults=fix_defaults)
    return result


def _destinations(
    output: Output | None, certificate: Output | None, source: ModelSource, strategy: Strategy
) -> tuple[Destination | None, Destination | None]:
    """Where the model and its proof go, found to be places that can be written to."""
    place = None if output is None else Destination.of(output)
    if certificate is None:
        return place, None
    if not strategy.proves:
        raise RelayoutError("a certificate needs the exact strategy: only that one proves anything")
    proof = Destination.of(certificate)
    if place is not None and proof.is_same(place):
        raise RelayoutError("the model and its certificate cannot be written to the same place")
    if isinstance(source, str | PathLike) and proof.is_same(Destination(str(source), Path(source))):
        raise RelayoutError("the certificate would overwrite the given model")
    return place, proof


@dataclass(frozen=True, slots=True)
class _Road:
    """From what was tried to a file in its place."""

    given: LoadedModel
    output: Destination | None
    certificate: Destination | None
    inputs: NumericOptions | None
    """What the numbers are compared on; None where they are not compared."""
    ready: Ready
    stage: Stage
    comparing: Comparing

    def copied(self, terms: Terms, reason: str) -> Result:
        """A model that may not be changed."""
        kept = self.given.clone()
        kept.notices.append(f"copied as it is: {reason}")
        if self.certificate is not None:
            kept.notices.append("no certificate: the model was copied as it is")
        nothing = Measure(0, 0, 0)
        result = Result(kept, ChooseLayouts(terms), nothing, nothing, (), False, {})
        return self._delivered(result, None)

    def finished(self, search: Search, terms: Terms, *notices: str, fix_defaults: bool) -> Result:
        """The best of some attempts, verified and written."""
        self.stage("optimising")
        with paused_collector():
            trials = in_rounds(search, terms)
        trial = trials[-1]
        if trial.improves:
            result = _result(trials, search.prepared, trial.loaded)
            result = replace(result, stated=trial.stated)
        else:
            kept = (fixed(self.given) if fix_defaults else self.given).clone()
            kept.notices[:] = trial.loaded.notices
            result = _result(trials, search.prepared, kept)
            is_fixed = kept.source is not self.given.source
            informed = None if is_fixed else search.prepared.informed
            result = replace(result, changed=is_fixed, informed=informed, outcomes=())
        result.loaded.notices.extend(notices)
        taken = self._taken(trials, fix_defaults=fix_defaults)
        attempts = tuple(map(_attempt_record, search.trials))
        return self._handed_over(replace(result, rounds=tuple(taken), attempts=attempts))

    def _taken(self, trials: Sequence[Trial], *, fix_defaults: bool) -> Iterator[Taken]:
        """The rounds that trials are the best of, each given what the one before it made."""
        models = [self.given, *(trial.loaded for trial in trials[:-1])]
        for model, trial in zip(models, trials, strict=True):
            yield Taken(
                *(model, model is not self.given, trial.choose, trial.attempt.by_factors),
                opset=trial.loaded.ir.opset_imports.get(""),
                fixed_defaults=fix_defaults,
            )

    def _handed_over(self, result: Result) -> Result:
        """Deliver a model; one whose interface may change is verified before that happens."""
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
            if self.certificate is not None and result.chooses:
                proof = delivered.certified(delivery.staged)
                yield Document(self.certificate, json.dumps(proof).encode())
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
    names = dict.fromkeys(name for each in trials for name in each.passes)
    passes = {name: sum(each.passes.get(name, 0.0) for each in trials) for name in names}
    return Result(
        *(loaded, trial.choose, trials[0].before, trial.after, outcomes, trial.improves),
        passes,
        lacking=(trials[0].lacking[0], trial.still_lacking),
        spelt_out=prepared.spelt_out,
        least=trial.least,
    )


def _freed(result: Result) -> Result:
    """The model with the Transposes at its border taken into its interface."""
    terms = result.choose.terms
    changes = free_interface(result.loaded, inputs=terms.free_inputs, outputs=terms.free_outputs)
    result.loaded.notices.extend(changes)
    if not changes:
        return result
    after = measure(result.loaded.ir, terms.dims)
    return replace(result, after=after, changed=True, informed=None, stated=None)


def _attempt_record(trial: Trial) -> AttemptRecord:
    measured, verdict = trial.measured, trial.verdict
    if verdict == KEPT and not trial.improves:
        verdict = ENLARGES if trial.enlarges else NOTHING_BETTER
    figures = measured.transposes, measured.bytes_moved
    return AttemptRecord(trial.attempt.words, *figures, trial.seconds, verdict)
